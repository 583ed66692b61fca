// Lets a test hold a thread at a place.
#pragma once

#include <condition_variable>
#include <mutex>

namespace longshort::core {

// Thread-safe.
class Gate {
 public:
  // Waits until the gate is open.
  void Pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  // Waits until `count` have come to the gate.
  void WaitForArrival(int count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, count] { return arrived_ >= count; });
  }
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

}  // namespace longshort::core
