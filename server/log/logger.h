// The server's log: lines with named fields, as text or as JSON, on standard error.
//
//   text:  2026-05-04T12:00:00.123Z info request id=4f1c rpc=Generate code=OK
//   json:
//   {"time":"2026-05-04T12:00:00.123Z","level":"info","message":"request","id":"4f1c","rpc":"Generate","code":"OK"}
//
// Thread-safe and never blocking: a thread of its own writes; when standard error is stuck, the oldest of 8192 waiting
// lines is dropped. Lines are always one line of valid UTF-8, whatever the fields hold.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/variant.h"
#include "server/options/server_options.h"

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace longshort {

using LogValue = absl::variant<std::string, int64_t, double>;
using LogFields = std::vector<std::pair<std::string, LogValue>>;

// One line without its end. Exposed for tests.
std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level, const std::string& message,
                          const LogFields& fields);

class Logger {
 public:
  Logger(LogFormat format, LogLevel least);
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void Log(LogLevel level, const std::string& message, const LogFields& fields = {});
  void Info(const std::string& message, const LogFields& fields = {}) { Log(LogLevel::kInfo, message, fields); }
  void Error(const std::string& message, const LogFields& fields = {}) { Log(LogLevel::kError, message, fields); }

  // Writes what is waiting, then stops: later lines are dropped.
  void Flush();

 private:
  const LogFormat format_;
  const LogLevel least_;
  std::shared_ptr<spdlog::details::thread_pool> writer_;
  std::shared_ptr<spdlog::logger> lines_;
};

}  // namespace longshort
