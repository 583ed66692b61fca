// SIGTERM, SIGINT and SIGHUP: the first asks the server to stop, the second ends the process at once.
#pragma once

#include <signal.h>

#include <atomic>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "base/thread.h"

namespace longshort::server {

// To be made by the main thread before any other thread: threads made later inherit that these signals are blocked, so
// that only the watcher's thread takes them (by sigwait, hence outside of any signal handler).
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

  // Returns at the first signal.
  void WaitForStop() { stop_.WaitForNotification(); }
  bool stop_requested() const { return stop_.HasBeenNotified(); }
  // Asks the server to stop, as the first signal does; nothing after that. Thread-safe.
  void Stop();

  // Ends the process with exit status 0 so many seconds from now, unless the watcher has ended before.
  void ExitAfter(unsigned int seconds);

 private:
  void Watch();

  sigset_t signals_;
  absl::Notification stop_;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> exits_ = false;
  Thread thread_;
};

}  // namespace longshort::server
