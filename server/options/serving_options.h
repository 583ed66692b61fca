// How one model is served: what the server's options say, but for what the model's serving.json says otherwise.
//
//   {
//     "version_policy": {"latest": 2},              or {"specific": [1, 3]}, or "all"
//     "devices": "cpu",                             as --devices
//     "priority_weights": {"high": 16, "normal": 4, "low": 1},
//     "max_queued_requests": 1024,                  as --max-queued-requests
//     "max_queue_time": "60s",                      durations are strings with a unit, as on the command line
//     "max_queued_requests_per_client": 0,          of these three, 0 is no limit
//     "max_queue_time_per_client": "0s",
//     "max_running_per_client": 0,
//
//     "max_batch_size": 32,                         classifiers only
//     "max_batch_tokens": 65536,
//     "max_queue_delay": "5ms",
//
//     "max_streams": 64,                            language models only
//     "step_time": "20ms",
//     "cache_bytes": 0,
//     "session_time_to_live": "30m"
//   }
//
// Every field may be left out. The fields' meanings stand in server/options/server_options.h and with the structs of
// core that they fill.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/registry/version_policy.h"
#include "core/schedule/waiting_limits.h"
#include "core/schedule/work_order.h"
#include "server/options/server_options.h"

namespace longshort {

struct ServingOptions {
  VersionPolicy version_policy = {};
  std::string devices;
  WaitingLimits limits = {};
  WorkOrder::Options order = {};

  // Of classifiers; core/classification/batch_former.h says what they do.
  int64_t max_batch_size = 0;
  int64_t max_batch_tokens = 0;
  absl::Duration max_queue_delay;

  // Of language models.
  int64_t max_streams = 0;
  absl::Duration step_time;
  int64_t cache_bytes = 0;
  absl::Duration session_time_to_live;

  // The fields that a serving.json had, with their values, for the log and for CheckKind.
  std::map<std::string, std::string> given = {};
};

// What the server's options say, and core's defaults where they say nothing.
ServingOptions DefaultServingOptions(const ServerOptions& options);

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

}  // namespace longshort
