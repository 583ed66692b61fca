// Reports that a GPU is lost to this process, which must be restarted to use it again.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace longshort::models {

// Thread-safe.
class GpuLoss final {
 public:
  using Listener = std::function<void(const std::string& why)>;

  // Sets the listener, which is called at most once; null: none.
  void SetListener(Listener listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }
  // `why`: the GPU, and its error.
  void Report(const std::string& why) {
    Listener listener;
    {
      const std::lock_guard lock(mutex_);
      std::swap(listener, listener_);
    }
    if (listener) listener(why);
  }

 private:
  std::mutex mutex_;
  Listener listener_;  // guarded by mutex_
};

}  // namespace longshort::models
