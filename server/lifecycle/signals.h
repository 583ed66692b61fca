// SIGTERM, SIGINT and SIGHUP: the first one stops the server, the second one ends the process at once.
#pragma once

#include <signal.h>

#include <atomic>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "base/thread.h"

namespace longshort::server {

// REQUIRES: made by the main thread before the program's other threads. They inherit that these signals are blocked, so
// the watcher's thread receives them (by sigwait, and so outside of any signal handler).
class SignalWatcher {
 public:
  // Blocks the signals.
  SignalWatcher();
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  // Errors: as Thread::Start.
  absl::Status Start() {
    return thread_.Start("the thread that waits for signals", [this] { Watch(); });
  }

  // Waits for the first signal.
  void WaitForStop() { stop_.WaitForNotification(); }
  bool stop_requested() const { return stop_.HasBeenNotified(); }
  // Requests a stop, as the first signal does. Later calls do nothing. Thread-safe.
  void Stop();

  // Ends the process with this exit status after `seconds`, unless the watcher is destroyed before.
  void ExitAfter(unsigned int seconds, int status);

 private:
  void Watch();

  sigset_t signals_;
  absl::Notification stop_;
  std::atomic<bool> ending_ = false;
  std::atomic<int> exit_status_ = -1;  // of ExitAfter
  Thread thread_;
};

}  // namespace longshort::server
