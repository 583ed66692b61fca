#include "clients/cpp/terminal.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace longshort::client {
namespace {

// Writes longer output in parts, to bound the memory.
constexpr size_t kMaxUnwritten = size_t{1} << 20;

// Ends the watcher's thread. The watcher ignores it if another process sends it.
constexpr int kEndSignal = SIGUSR1;

// ANSI: moves to the start of the line and clears it.
constexpr char kClearLine[] = "\r\033[K";

constexpr int kProgressBarLength = 20;

// Minimum time between redraws by Advance.
constexpr absl::Duration kInterval = absl::Milliseconds(100);

// Redraw interval while no item completes.
constexpr absl::Duration kRedraw = absl::Milliseconds(500);

std::string RemainingTime(absl::Duration remaining) {
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(remaining, absl::Seconds(1)));
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrFormat("%d min %02d s", seconds / 60, seconds % 60);
  return absl::StrFormat("%d h %02d min", seconds / 3600, seconds / 60 % 60);
}

// Returns "  48.2/s  16 s left", without the remaining time if the total is unknown.
std::string Pace(int64_t done, int64_t total, absl::Duration elapsed) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  if (done == 0 || seconds <= 0) return seconds < 1 ? "" : absl::StrFormat("  %.0f s", seconds);
  const double rate = static_cast<double>(done) / seconds;
  std::string text = absl::StrFormat("  %.1f/s", rate);
  if (total != 0 && done <= total) {
    absl::StrAppend(&text, "  ", RemainingTime(absl::Seconds(static_cast<double>(total - done) / rate)), " left");
  }
  return text;
}

// Returns "512/1280 images", or "512 images".
std::string Count(int64_t done, int64_t total, const std::string& unit) {
  return total == 0 || done > total ? absl::StrCat(done, " ", unit) : absl::StrCat(done, "/", total, " ", unit);
}

}  // namespace

StoppableInput::int_type StoppableInput::underflow() {
  std::array<pollfd, 2> sources = {pollfd{descriptor_, POLLIN, 0}, pollfd{stopped_, POLLIN, 0}};
  ssize_t count = -1;
  do {
    if (poll(sources.data(), sources.size(), -1) < 0) continue;
    if (sources[1].revents != 0) return traits_type::eof();
    count = read(descriptor_, block_.data(), block_.size());
  } while (count < 0 && (errno == EINTR || errno == EAGAIN));
  if (count < 0) throw std::system_error(errno, std::generic_category());
  setg(block_.data(), block_.data(), block_.data() + count);
  return count == 0 ? traits_type::eof() : traits_type::to_int_type(block_.front());
}

std::streamsize LineOutput::xsputn(const char* bytes, std::streamsize count) {
  unwritten_.append(bytes, static_cast<size_t>(count));
  return unwritten_.size() <= kMaxUnwritten || sync() == 0 ? count : 0;
}

LineOutput::int_type LineOutput::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

int LineOutput::sync() {
  size_t done = 0;
  while (error_ == 0 && done < unwritten_.size()) {
    const ssize_t written = write(descriptor_, unwritten_.data() + done, unwritten_.size() - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  unwritten_.clear();
  return error_ == 0 ? 0 : -1;
}

InterruptWatcher::InterruptWatcher(std::function<void()> on_interrupt) : on_interrupt_(std::move(on_interrupt)) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, kEndSignal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  const auto wait = [this] {
    for (int signal = 0; sigwait(&signals_, &signal) == 0 && !ending_;) {
      if (signal != kEndSignal) on_interrupt_();
    }
  };
  // Without the thread, the signals end the program as usual.
  if (!thread_.Start("the thread that waits for signals", wait).ok()) {
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  }
}

InterruptWatcher::~InterruptWatcher() {
  ending_ = true;
  if (thread_.started()) pthread_kill(thread_.handle(), kEndSignal);
}

std::string ProgressText(int64_t done, int64_t total, const std::string& unit, absl::Duration elapsed) {
  std::string text = absl::StrCat(Count(done, total, unit), Pace(done, total, elapsed));
  if (total == 0 || done > total) return text;
  const auto filled = static_cast<size_t>(kProgressBarLength * done / total);
  return absl::StrCat("[", std::string(filled, '#'), std::string(kProgressBarLength - filled, '-'), "]  ", text);
}

ProgressBar::ProgressBar(Terminal& terminal, Options options, const Clock& clock)
    : terminal_(terminal),
      options_(std::move(options)),
      is_visible_(terminal.error_is_terminal && !options_.quiet),
      clock_(clock),
      start_(clock.Now()),
      drawn_(start_) {
  if (!is_visible_) return;
  if (options_.total != 1) Draw(start_);
  const auto redraw = [this] {
    const MutexLock lock(mutex_);
    const absl::Time now = clock_.Now();
    if (!hidden_) Draw(now);
  };
  redraw_.Start("the thread that redraws the progress", {.interval = kRedraw, .run = redraw}).IgnoreError();
}

ProgressBar::~ProgressBar() {
  Hide();
  redraw_.Stop();
}

void ProgressBar::Advance() {
  const MutexLock lock(mutex_);
  ++done_;
  hidden_ = false;
  const absl::Time now = clock_.Now();
  if (is_visible_ && options_.total != 1 && (!shown_ || now - drawn_ >= kInterval)) Draw(now);
}

void ProgressBar::Hide() {
  const MutexLock lock(mutex_);
  if (shown_) terminal_.error << kClearLine << std::flush;
  shown_ = false;
  hidden_ = true;
}

void ProgressBar::Draw(absl::Time now) {
  drawn_ = now;
  terminal_.error << kClearLine << ProgressText(done_, options_.total, options_.unit, now - start_) << std::flush;
  shown_ = true;
}

}  // namespace longshort::client
