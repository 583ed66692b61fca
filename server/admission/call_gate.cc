#include "server/admission/call_gate.h"

#include <utility>

#include "base/clock.h"

namespace longshort {

bool CallGate::Enter() {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  ++inside_;
  return true;
}

void CallGate::Leave(bool unavailable) {
  const std::lock_guard lock(mutex_);
  --inside_;
  if (closed_ && unavailable) ++cut_off_;
  left_.notify_all();
}

void CallGate::Close() {
  std::map<int64_t, std::function<void()>> watches;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    watches.swap(watches_);
  }
  for (const auto& [watch, on_close] : watches) on_close();
}

bool CallGate::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

int64_t CallGate::WhenClosed(std::function<void()> on_close) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      watches_[++last_watch_] = std::move(on_close);
      return last_watch_;
    }
  }
  on_close();
  return 0;
}

void CallGate::Forget(int64_t watch) {
  const std::lock_guard lock(mutex_);
  watches_.erase(watch);
}

int64_t CallGate::WaitUntilEmpty(absl::Time deadline) {
  std::unique_lock lock(mutex_);
  left_.wait_for(lock, absl::ToChronoNanoseconds(deadline - MonotonicNow()), [this] { return inside_ == 0; });
  return cut_off_ + inside_;
}

}  // namespace longshort
