#include "server/log/logger.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace longshort {
namespace {

constexpr size_t kWaitingLines = 8192;
// Waking a thread costs as much as answering a short call: once in so long is nothing.
constexpr std::chrono::milliseconds kGatherTime(10);

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

// Not by stdio: a write that is stuck would have its lock, which libraries want when the process ends.
void WriteToStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // if standard error is gone, nobody is left to tell
    text.remove_prefix(written);
  }
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

Logger::Logger(LogFormat format, LogLevel least) : format_(format), least_(least), writer_(&Logger::Write, this) {}

Logger::~Logger() {
  Flush(absl::ZeroDuration());
  writer_.join();
}

void Logger::Flush(absl::Duration patience) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, absl::ToChronoNanoseconds(patience), [this] { return all_written_; });
}

void Logger::Log(LogLevel level, std::string message, LogFields fields) {
  if (level < least_) return;
  Line line{absl::Now(), level, std::move(message), std::move(fields)};
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (lines_.size() == kWaitingLines) lines_.pop_front();
    lines_.push_back(std::move(line));
    first = lines_.size() == 1;
  }
  if (first) changed_.notify_one();
}

void Logger::Write() {
  std::deque<Line> lines;
  std::string text;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closed_ || !lines_.empty(); });
    changed_.wait_for(lock, kGatherTime, [this] { return closed_; });
    if (lines_.empty()) break;
    lines.swap(lines_);
    lock.unlock();
    for (const Line& line : lines) {
      absl::StrAppend(&text, FormatLogLine(format_, line.time, line.level, line.message, line.fields), "\n");
    }
    WriteToStandardError(text);
    text.clear();
    lines.clear();
    lock.lock();
  }
  all_written_ = true;
  changed_.notify_all();
}

}  // namespace longshort
