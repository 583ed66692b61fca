// Logs why a model's steps fail and why its workers have no replica: at most one line of each kind a second.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/monitoring/logger.h"

namespace longshort::server {

// Thread-safe.
class FailureLog {
 public:
  // `log` must outlive this.
  FailureLog(Logger& log, std::string model) : log_(log), model_(std::move(model)) {}

  // A step or a batch failed; each of its requests is tried again, unless it has failed too often. `now` is
  // MonotonicNow(), here and below.
  void StepFailed(const absl::Status& why, absl::Time now) { Say("step failed", why, now); }
  // A worker has no replica, and keeps trying to get one.
  void WorkerNotRebuilt(const absl::Status& why, absl::Time now) {
    Say("worker has no model; it retries every second", why, now);
  }

 private:
  void Say(const char* message, const absl::Status& why, absl::Time now) {
    log_.LogLimited(
        absl::StrCat(message, " ", model_), now, LogLevel::kError, message,
        {{"model", model_}, {"code", absl::StatusCodeToString(why.code())}, {"error", std::string(why.message())}});
  }

  Logger& log_;
  const std::string model_;
};

}  // namespace longshort::server
