// Says that a GPU is lost to this process, which has to be started anew to use it again.
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

  // Who is to be told from now on, once at the most; null: nobody.
  void SetListener(Listener listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }
  // `why`: the GPU, and what it said.
  void Tell(const std::string& why) {
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
