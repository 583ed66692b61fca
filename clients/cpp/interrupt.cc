#include "clients/cpp/interrupt.h"

#include <pthread.h>

#include <utility>

namespace longshort {
namespace {

// Sent to the watcher's own thread to end it; means nothing if somebody else sends it.
constexpr int kEndSignal = SIGUSR1;

}  // namespace

InterruptWatcher::InterruptWatcher(std::function<void()> on_interrupt) : on_interrupt_(std::move(on_interrupt)) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, kEndSignal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { Run(); });
}

InterruptWatcher::~InterruptWatcher() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), kEndSignal);
  thread_.join();
}

void InterruptWatcher::Run() {
  int signal = 0;
  while (sigwait(&signals_, &signal) == 0 && !ending_) {
    if (signal != kEndSignal) on_interrupt_();
  }
}

}  // namespace longshort
