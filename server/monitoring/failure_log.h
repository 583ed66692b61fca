// Logs why a model's steps fail and why its workers have no replica: at most one line of each kind a second, with the
// number of lines left out before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/monitoring/line_limit.h"
#include "server/monitoring/logger.h"

namespace longshort::server {

// Thread-safe.
class FailureLog {
 public:
  // `log` must outlive this.
  FailureLog(Logger& log, std::string model) : log_(log), model_(std::move(model)) {}

  // A step or a batch failed; each of its requests is tried again, unless it has failed too often. `now` is
  // MonotonicNow(), here and below.
  void StepFailed(const absl::Status& why, absl::Time now) { Say(steps_, why, now); }
  // A worker has no replica, and keeps trying to get one.
  void WorkerNotRebuilt(const absl::Status& why, absl::Time now) { Say(rebuilds_, why, now); }

 private:
  // Lines of one kind.
  struct Lines {
    const char* message;
    Mutex mutex = {};
    LineLimit limit ABSL_GUARDED_BY(mutex) = LineLimit(absl::Seconds(1));
  };

  void Say(Lines& lines, const absl::Status& why, absl::Time now) {
    std::optional<int64_t> left_out;
    {
      const MutexLock lock(lines.mutex);
      left_out = lines.limit.Pass(now);
    }
    if (!left_out.has_value()) return;
    LogFields fields = {
        {"model", model_}, {"code", absl::StatusCodeToString(why.code())}, {"error", std::string(why.message())}};
    if (*left_out > 0) fields.emplace_back("left_out", *left_out);
    log_.Error(lines.message, std::move(fields));
  }

  Logger& log_;
  const std::string model_;
  Lines steps_{"step failed"};
  Lines rebuilds_{"worker has no model; it retries every second"};
};

}  // namespace longshort::server
