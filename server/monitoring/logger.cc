#include "server/monitoring/logger.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/strict_json.h"

namespace longshort::server {
namespace {

constexpr size_t kWaitingLines = 8192;
constexpr int64_t kWaitingBytes = int64_t{4} << 20;
// Text that is written at once.
constexpr size_t kTextBytes = size_t{64} << 10;
// Waking a thread costs as much as answering a short call, so lines are written in batches.
constexpr absl::Duration kGatherTime = absl::Milliseconds(10);

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
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}

// Text that JSON would not escape.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

// Whether `key=value` needs no quotes.
bool IsWord(std::string_view text) {
  return !text.empty() && IsPlain(text) && text.find_first_of(" =") == std::string_view::npos;
}

// What a line takes in memory.
int64_t BytesOf(const std::string& message, const LogFields& fields) {
  constexpr size_t kLineBytes = 128;
  size_t bytes = kLineBytes + message.size() + fields.capacity() * sizeof(fields[0]);
  for (const auto& [key, value] : fields) {
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr) bytes += text->size();
  }
  return static_cast<int64_t>(bytes);
}

std::string TextOf(const LogValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value); number != nullptr) return absl::StrCat(*number);
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && IsWord(*text) ? *text : DumpJson(ToJson(value));
}

// A message may quote a client or a file, so its control characters are escaped as in JSON.
std::string MessageText(const std::string& message) {
  if (IsPlain(message)) return message;
  const std::string quoted = DumpJson(nlohmann::ordered_json(message));
  return quoted.substr(1, quoted.size() - 2);
}

// Returns the text that could not be written, if the disk is full or the reader has gone. Does not use stdio: a stuck
// write would hold its lock, which libraries need when the process exits.
std::string_view WriteToStandardError(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // another process may have made it non-blocking
      pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      poll(&room, 1, -1);
      continue;
    }
    if (written <= 0) break;
    text.remove_prefix(written);
  }
  return text;
}

class LineWriter final {
 public:
  // Returns how many lines could not be written, including a partial one.
  int64_t Write(std::string_view lines) {
    if (is_cut_ && WriteToStandardError("\n").empty()) is_cut_ = false;
    const std::string_view unwritten = is_cut_ ? lines : WriteToStandardError(lines);
    const size_t written = lines.size() - unwritten.size();
    if (written > 0) is_cut_ = lines[written - 1] != '\n';
    return std::count(unwritten.begin(), unwritten.end(), '\n');
  }

 private:
  bool is_cut_ = false;  // the last line is incomplete
};

// The libraries accept only functions without state.
std::atomic<Logger*> target = nullptr;

void FromGrpc(gpr_log_func_args* line) {
  if (line->severity != GPR_LOG_SEVERITY_ERROR) return;
  // A failed handshake is a client's error: no TLS, no valid certificate, or a timeout.
  if (absl::StartsWith(line->message, "Handshake failed") || absl::StrContains(line->message, "Handshake timed out")) {
    return target.load()->LogLimited("handshake", MonotonicNow(), LogLevel::kInfo, "client refused",
                                     {{"why", std::string(line->message)}});
  }
  // Invalid headers are also a client's error, and a client can send any number of them. The line cannot name the
  // client: gRPC passes a place in its source and a text, no connection, and any of its threads may do a connection's
  // work. The line of a call that fails does (server/call/call_record.cc).
  // So is a name for which there is no certificate (SNI).
  const bool from_client = absl::StartsWith(line->message, "Error parsing metadata") ||
                           absl::StartsWith(line->message, "No match found for server name");
  target.load()->LogLimited(absl::StrCat(line->file, ":", line->line), MonotonicNow(),
                            from_client ? LogLevel::kDebug : LogLevel::kError, "gRPC",
                            {{"error", std::string(line->message)}});
}

// An invalid message is the client's error, and is in its call's log line.
void FromProtobuf(google::protobuf::LogLevel level, const char* file, int line, const std::string& message) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  target.load()->LogLimited(absl::StrCat(file, ":", line), MonotonicNow(), fatal ? LogLevel::kError : LogLevel::kDebug,
                            "Protobuf", {{"error", message}});
}

}  // namespace

std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level, const std::string& message,
                          const LogFields& fields) {
  const std::string stamp = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  if (format == LogFormat::kJson) {
    nlohmann::ordered_json line = {{"time", stamp}, {"level", Name(level)}, {"message", message}};
    for (const auto& [key, value] : fields) line[key] = ToJson(value);
    return DumpJson(line);
  }
  std::string line = absl::StrCat(stamp, " ", Name(level), " ", MessageText(message));
  for (const auto& [key, value] : fields) absl::StrAppend(&line, " ", key, "=", TextOf(value));
  return line;
}

Logger::~Logger() {
  Flush(absl::ZeroDuration());
  writer_.Join();
}

void Logger::Flush(absl::Duration patience) {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
  changed_.WaitFor(mutex_, patience, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_written_; });
}

void Logger::ChargeTo(std::shared_ptr<Budget> budget) {
  const MutexLock lock(mutex_);
  memory_ = Budget::Share(std::move(budget));
  UpdateMemory();
}

void Logger::Log(LogLevel level, std::string message, LogFields fields) {
  if (level < min_) return;
  Line line{absl::Now(), level, std::move(message), std::move(fields)};
  bool first = false;
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    waiting_bytes_ += BytesOf(line.message, line.fields);
    lines_.push_back(std::move(line));
    for (; lines_.size() > kWaitingLines || waiting_bytes_ > kWaitingBytes; ++lost_) {
      waiting_bytes_ -= BytesOf(lines_.front().message, lines_.front().fields);
      lines_.pop_front();
    }
    UpdateMemory();
    first = lines_.size() == 1;
  }
  if (first) changed_.NotifyOne();
}

void Logger::LogLimited(const std::string& kind, int64_t lines, absl::Time now, LogLevel level, std::string message,
                        absl::FunctionRef<LogFields()> fields) {
  if (level < min_) return;
  int64_t left_out = 0;
  {
    const MutexLock lock(mutex_);
    Limit& limit = limits_[kind];
    if (now >= limit.next) {
      limit.next = now + absl::Seconds(1);
      limit.lines = 0;
    }
    if (++limit.lines > lines) {
      ++limit.left_out;
      return;
    }
    left_out = std::exchange(limit.left_out, 0);
  }
  LogFields all = fields();
  if (left_out > 0) all.emplace_back("left_out", left_out);
  Log(level, std::move(message), std::move(all));
}

void Logger::Write() {
  std::deque<Line> lines;
  std::string text;
  LineWriter writer;
  int64_t lost = 0;
  MutexLock lock(mutex_);
  while (true) {
    changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !lines_.empty(); });
    changed_.WaitFor(mutex_, kGatherTime, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_; });
    if (lines_.empty()) break;
    lines.swap(lines_);
    writing_bytes_ = std::exchange(waiting_bytes_, 0);
    lost += std::exchange(lost_, 0);
    lock.Unlock();
    if (lost > 0) {
      const LogFields count = {{"lines", lost}};
      text = FormatLogLine(format_, absl::Now(), LogLevel::kWarning, "log lines lost", count) + "\n";
      if (writer.Write(text) == 0) lost = 0;
      text.clear();
    }
    for (const Line& line : lines) {
      absl::StrAppend(&text, FormatLogLine(format_, line.time, line.level, line.message, line.fields), "\n");
      if (text.size() < kTextBytes) continue;
      lost += writer.Write(text);
      text.clear();
    }
    lost += writer.Write(text);
    text.clear();
    lines.clear();
    lock.Lock();
    writing_bytes_ = 0;
    UpdateMemory();
  }
  all_written_ = true;
  changed_.NotifyAll();
}

void CaptureLibraryLogs(Logger& log) {
  target = &log;
  gpr_set_log_function(FromGrpc);
  google::protobuf::SetLogHandler(FromProtobuf);
}

}  // namespace longshort::server
