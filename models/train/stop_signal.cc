#include "models/train/stop_signal.h"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <iterator>

namespace longshort {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
struct sigaction actions_before[std::size(kSignals)];
std::atomic<bool> has_received = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal may come on any thread at any time");

// Signals that are ignored, as SIGINT is for the background commands of a script, stay so.
void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // what is being written is written to its end
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (actions_before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

}  // namespace

StopSignal::StopSignal() {
  has_received = false;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], nullptr, &actions_before[i]);
  Handle([](int) {
    has_received = true;
    Handle(SIG_DFL);
  });
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &actions_before[i], nullptr);
}

bool StopSignal::received() const { return has_received; }

}  // namespace longshort
