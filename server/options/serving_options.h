// How one model is served: what the server's options say, except where the model's serving.json says otherwise.
//
//   {
//     "version_policy": {"latest": 2},              or {"specific": [1, 3]}, or "all"
//     "priority_weights": {"high": 16, "normal": 4, "low": 1},
//     "max_streams": 64,                            as --max-streams
//     "step_time": "20ms"                           durations are strings with a unit, as on the command line
//   }
//
// Every field may be left out. A field's meaning, unit, range and default stand in its row (serving_options.cc). The
// rows of AddServingOptions are also options of the command line, with - for _.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/option_table.h"
#include "core/registry/model_repository.h"
#include "core/schedule/refusal.h"
#include "core/schedule/work_order.h"

namespace longshort::server {

struct ServingOptions {
  core::VersionPolicy version_policy = {};
  std::string devices = "cpu";
  core::WaitingLimits limits = {.max_queued = 1024, .max_queued_cost = absl::Seconds(60)};
  core::WorkOrder::Options order = {};

  // Of classifiers; core/classification/batch_former.h says what they do.
  int64_t max_batch_size = 32;
  int64_t max_batch_tokens = 65536;
  absl::Duration max_queue_delay = absl::ZeroDuration();

  // Of language models.
  int64_t max_streams = 64;
  absl::Duration step_time = absl::Milliseconds(20);
  int64_t cache_bytes = 0;
  absl::Duration session_time_to_live = absl::Minutes(30);

  // The fields that a serving.json had, with their values, for the log and for CheckKind.
  std::map<std::string, std::string> given = {};
};

// Adds the rows of what both the command line and serving.json say.
void AddServingOptions(OptionTable& table, ServingOptions& options);

// The table of the fields that only serving.json has, as Markdown.
std::string ServingFieldsMarkdown();

// `text` is that of a serving.json, `name` stands for the file in errors. What it does not say is as in `defaults`.
// Errors: INVALID_ARGUMENT naming the file and the first field that is unknown, of another type, or out of its range,
// with its value and the range; or that stands there twice.
absl::StatusOr<ServingOptions> ParseServingOptions(std::string_view text, const std::string& name,
                                                   const ServingOptions& defaults);

// The same of a file. One that is not there says nothing. Errors: also INVALID_ARGUMENT for a file over 64 KiB, and the
// system's if it cannot be read.
absl::StatusOr<ServingOptions> ReadServingOptions(const std::string& path, const ServingOptions& defaults);

enum class ModelKind { kClassifier, kLanguageModel };

// Errors: INVALID_ARGUMENT, beginning with `name`, for a field that was given and means nothing to a model of this
// kind.
absl::Status CheckKind(const ServingOptions& options, const std::string& name, ModelKind kind);

}  // namespace longshort::server
