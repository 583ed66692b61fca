#include "core/generation/helper_threads.h"

#include <algorithm>

#include "base/status_macros.h"

namespace longshort::core {
namespace {

// Calls that a thread takes at a time.
constexpr int64_t kCalls = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<HelperThreads>> HelperThreads::Create(int64_t threads) {
  std::unique_ptr<HelperThreads> helpers(new HelperThreads());
  helpers->threads_.resize(threads);
  for (Thread& thread : helpers->threads_) {
    LS_RETURN_IF_ERROR(thread.Start("a thread that samples", [helpers = helpers.get()] { helpers->Help(); }));
  }
  return helpers;
}

HelperThreads::~HelperThreads() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  begun_.NotifyAll();
}

void HelperThreads::ForEach(int64_t count, absl::FunctionRef<void(int64_t)> use) {
  {
    const MutexLock lock(mutex_);
    use_ = &use;
    next_ = 0;
    count_ = count;
  }
  if (count > kCalls) begun_.NotifyAll();
  Call();
  const MutexLock lock(mutex_);
  done_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calling_ == 0; });
  use_ = nullptr;
}

void HelperThreads::Call() {
  MutexLock lock(mutex_);
  ++calling_;
  while (next_ < count_) {
    const int64_t first = next_, end = std::min(first + kCalls, count_);
    next_ = end;
    absl::FunctionRef<void(int64_t)>& use = *use_;
    lock.Unlock();
    for (int64_t i = first; i < end; ++i) use(i);
    lock.Lock();
  }
  if (--calling_ == 0) done_.NotifyOne();
}

void HelperThreads::Help() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      begun_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ending_ || (use_ != nullptr && next_ < count_);
      });
      if (ending_) return;
    }
    Call();
  }
}

}  // namespace longshort::core
