// How one model is served: the server's options, overridden by the model's serving.json.
//
//   {
//     "version_policy": {"latest": 2},              or {"specific": [1, 3]}, or "all"
//     "priority_weights": {"high": 16, "normal": 4, "low": 1},
//     "max_streams": 64,                            as --max-streams
//     "step_time": "20ms"                           durations are strings with a unit, as on the command line
//   }
//
// Every field is optional. A field's meaning, unit, range and default are in its row (serving_options.cc). The rows of
// AddServingOptions are also options of the command line, with - for _.
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

  // Classifiers only; see core/classification/batch_former.h.
  int64_t max_batch_size = 32;
  int64_t max_batch_tokens = 65536;
  absl::Duration max_queue_delay = absl::ZeroDuration();

  // Language models only.
  int64_t max_streams = 64;
  absl::Duration step_time = absl::Milliseconds(20);
  int64_t cache_bytes = 0;
  absl::Duration session_time_to_live = absl::Minutes(30);

  // The fields of the serving.json and their values, for the log and for CheckKind.
  std::map<std::string, std::string> given = {};
};

// Adds the rows of the options that the command line and serving.json share.
void AddServingOptions(OptionTable& table, ServingOptions& options);

// The fields that only serving.json has, as a Markdown table.
std::string ServingFieldsMarkdown();

// Parses the `text` of a serving.json; `name` is the file in errors. Absent fields keep the value of `defaults`.
// Errors: INVALID_ARGUMENT naming the file and the first field that is unknown, duplicate, of another type, or out of
// its range, with its value and the range.
absl::StatusOr<ServingOptions> ParseServingOptions(std::string_view text, const std::string& name,
                                                   const ServingOptions& defaults);

// Parses a file; a missing file returns `defaults`. Errors: also INVALID_ARGUMENT for a file over 64 KiB, and the
// system's if it cannot be read.
absl::StatusOr<ServingOptions> ReadServingOptions(const std::string& path, const ServingOptions& defaults);

enum class ModelKind { kClassifier, kLanguageModel };

// Errors: INVALID_ARGUMENT, beginning with `name`, if the file has a field that is not for models of this kind.
absl::Status CheckKind(const ServingOptions& options, const std::string& name, ModelKind kind);

}  // namespace longshort::server
