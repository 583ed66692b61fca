// The server's log: lines with named fields, as text or as JSON, on standard error.
//
//   text:  2026-05-04T12:00:00.123Z info request id=4f1c rpc=Generate code=OK
//   json:
//   {"time":"2026-05-04T12:00:00.123Z","level":"info","message":"request","id":"4f1c","rpc":"Generate","code":"OK"}
//
// Thread-safe, and Log never blocks: a thread writes lines in batches of 10 ms, so that it does not wake for every
// line. If standard error is stuck, the oldest of 8192 queued lines, or of 4 MiB, is dropped; the writer may hold as
// many more. Lines that cannot be written (a full disk) are lost. A later line reports how many were lost. Every line
// is one line of valid UTF-8, whatever its fields hold.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "server/options/server_options.h"

namespace longshort::server {

using LogValue = std::variant<std::string, int64_t, double>;
// Names must be literals, because a line is written after Log has returned.
using LogFields = std::vector<std::pair<const char*, LogValue>>;

// One line without its end. Exposed for tests.
std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level, const std::string& message,
                          const LogFields& fields);

class Logger {
 public:
  // Lines are queued until Start.
  Logger(LogFormat format, LogLevel min) : format_(format), min_(min) {}
  // Writes the queued lines, however long that takes.
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // Errors: as Thread::Start.
  absl::Status Start() {
    return writer_.Start("the thread that writes the log", [this] { Write(); });
  }

  // Takes the memory of lines that are not written from `budget`, which they may exceed.
  void ChargeTo(std::shared_ptr<Budget> budget);

  void Log(LogLevel level, std::string message, LogFields fields = {});
  void Info(std::string message, LogFields fields = {}) { Log(LogLevel::kInfo, std::move(message), std::move(fields)); }
  void Error(std::string message, LogFields fields = {}) {
    Log(LogLevel::kError, std::move(message), std::move(fields));
  }

  // Logs at most `lines` lines of each kind a second: for what may happen any number of times, because clients cause it
  // or because it goes on. The next line of the kind has the number of those left out (`left_out`). There must be a
  // fixed number of kinds. `now` is MonotonicNow(). `fields` is called for a line that is not left out.
  void LogLimited(const std::string& kind, int64_t lines, absl::Time now, LogLevel level, std::string message,
                  absl::FunctionRef<LogFields()> fields);
  // The same with one line a second.
  void LogLimited(const std::string& kind, absl::Time now, LogLevel level, std::string message, LogFields fields) {
    LogLimited(kind, 1, now, level, std::move(message), [&fields] { return std::move(fields); });
  }

  // Writes the queued lines, and drops later ones. Returns after `patience` even if standard error is stuck.
  void Flush(absl::Duration patience);

 private:
  struct Line {
    absl::Time time;
    LogLevel level;
    std::string message;
    LogFields fields;
  };

  struct Limit {
    absl::Time next = absl::InfinitePast();  // when the next second begins
    int64_t lines = 0;                       // written in this one
    int64_t left_out = 0;
  };

  // The writer's thread: until Flush, or the end.
  void Write();
  void UpdateMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { memory_.SetAmount(waiting_bytes_ + writing_bytes_); }

  const LogFormat format_;
  const LogLevel min_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Line> lines_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Limit> limits_ ABSL_GUARDED_BY(mutex_);  // by kind
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;            // of these
  int64_t writing_bytes_ ABSL_GUARDED_BY(mutex_) = 0;            // of those that the writer has
  Budget::Share memory_ ABSL_GUARDED_BY(mutex_);
  int64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;  // lines lost since the last report
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool all_written_ ABSL_GUARDED_BY(mutex_) = false;

  Thread writer_;  // last: it uses the other members
};

// Sends the libraries' errors to `log`, which must live until the process exits. Only errors, because their other
// lines are of little use; and at most one line a second from each place in their source.
void CaptureLibraryLogs(Logger& log);

// Logs why a model's steps fail and why its workers have no replica: at most one line of each kind a second.

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
