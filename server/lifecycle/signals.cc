#include "server/lifecycle/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace longshort {
namespace {

// Wakes the watcher's thread to its end; means nothing if somebody else sends it.
constexpr int kEndWatch = SIGUSR2;
// What shells report for a process that a signal ended.
constexpr int kExitBase = 128;

sigset_t WatchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, kEndWatch);
  return signals;
}

}  // namespace

SignalWatcher::SignalWatcher() {
  const sigset_t signals = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A client that closes its connection is no reason to end.
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { Watch(); });
}

SignalWatcher::~SignalWatcher() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), kEndWatch);
  thread_.join();
}

void SignalWatcher::Watch() {
  const sigset_t signals = WatchedSignals();
  for (int received = 0; sigwait(&signals, &received) == 0 && !ending_;) {
    if (received == kEndWatch) continue;
    if (stop_.HasBeenNotified()) _exit(kExitBase + received);
    stop_.Notify();
  }
}

}  // namespace longshort
