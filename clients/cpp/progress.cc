#include "clients/cpp/progress.h"

#include <chrono>
#include <utility>

namespace longshort {
namespace {

// ANSI: back to the start of the line, and clear it.
constexpr char kClearLine[] = "\r\033[K";

// Calls shorter than this show nothing; longer ones are shown anew this often.
constexpr std::chrono::milliseconds kInterval(500);

}  // namespace

Progress::Progress(Terminal& terminal, std::string what) : terminal_(terminal), what_(std::move(what)) {
  if (terminal_.error_is_terminal) thread_ = std::thread([this] { Run(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_one();
  thread_.join();
}

void Progress::Run() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_changed_.wait_for(lock, kInterval, [this] { return ended_; })) {
    const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    terminal_.error << kClearLine << what_ << "  " << elapsed.count() << " s" << std::flush;
  }
  terminal_.error << kClearLine << std::flush;
}

}  // namespace longshort
