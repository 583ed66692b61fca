// Notifies a test that a request has ended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace longshort::core {

// Whether a request has ended, to wait for from another thread. Thread-safe.
class EndSignal {
 public:
  void Notify() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  bool ended() const {
    std::lock_guard lock(mutex_);
    return ended_;
  }
  // False if it has not ended within a minute.
  bool Wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, std::chrono::system_clock::now() + std::chrono::minutes(1),
                               [this] { return ended_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}  // namespace longshort::core
