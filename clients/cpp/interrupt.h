// Ctrl-C and SIGTERM as a callback in an ordinary thread, where locks and gRPC may be used.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace longshort {

// Construct before any other thread exists: the signals are blocked in the constructing thread and in those that it
// starts. `on_interrupt` runs in the watcher's own thread, once for each signal.
class InterruptWatcher final {
 public:
  explicit InterruptWatcher(std::function<void()> on_interrupt);
  // Waits for a running callback. The signals stay blocked.
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

 private:
  void Run();

  const std::function<void()> on_interrupt_;
  sigset_t signals_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace longshort
