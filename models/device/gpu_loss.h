// Reports that a GPU is lost to this process, which must be restarted to use it again.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace longshort::models {

// Thread-safe.
class GpuLoss final {
 public:
  using Listener = std::function<void(const std::string& why)>;

  // Sets the listener, which is called at most once; null: none.
  void SetListener(Listener listener) {
    const MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }
  // `why`: the GPU, and its error.
  void Report(const std::string& why) {
    Listener listener;
    {
      const MutexLock lock(mutex_);
      std::swap(listener, listener_);
    }
    if (listener) listener(why);
  }

 private:
  Mutex mutex_;
  Listener listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longshort::models
