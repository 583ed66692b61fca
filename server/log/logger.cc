#include "server/log/logger.h"

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

constexpr size_t kWaitingLines = 8192;

const char* Name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

nlohmann::ordered_json ToJson(const LogValue& value) {
  return absl::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

// JSON text; bytes that are not UTF-8 become U+FFFD.
std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// A word that can stand in `key=value` as it is.
bool IsPlain(const std::string& text) {
  if (text.empty()) return false;
  for (const unsigned char c : text) {
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\') return false;
  }
  return true;
}

std::string TextOf(const LogValue& value) {
  const auto* text = absl::get_if<std::string>(&value);
  return text != nullptr && IsPlain(*text) ? *text : Dump(ToJson(value));
}

}  // namespace

std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level, const std::string& message,
                          const LogFields& fields) {
  const std::string stamp = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json line = {{"time", stamp}, {"level", Name(level)}, {"message", message}};
    for (const auto& [key, value] : fields) line[key] = ToJson(value);
    return Dump(line);
  }
  // A message is ours, but may quote what a client or a file said: its control characters are shown as JSON would.
  const std::string quoted = Dump(nlohmann::ordered_json(message));
  std::string line = absl::StrCat(stamp, " ", Name(level), " ", quoted.substr(1, quoted.size() - 2));
  for (const auto& [key, value] : fields) absl::StrAppend(&line, " ", key, "=", TextOf(value));
  return line;
}

Logger::Logger(LogFormat format, LogLevel least)
    : format_(format), least_(least), writer_(std::make_shared<spdlog::details::thread_pool>(kWaitingLines, 1)) {
  lines_ = std::make_shared<spdlog::async_logger>("longshort", std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                                  writer_, spdlog::async_overflow_policy::overrun_oldest);
  lines_->set_pattern("%v");
  // After Flush, and if standard error is gone: nobody is left to tell.
  lines_->set_error_handler([](const std::string&) {});
}

// Ending the pool writes all that waits.
void Logger::Flush() { writer_.reset(); }

void Logger::Log(LogLevel level, const std::string& message, const LogFields& fields) {
  if (level < least_) return;
  lines_->info("{}", FormatLogLine(format_, absl::Now(), level, message, fields));
}

}  // namespace longshort
