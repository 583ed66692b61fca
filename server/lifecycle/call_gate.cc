#include "server/lifecycle/call_gate.h"

namespace longshort {

bool CallGate::Enter() {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  ++inside_;
  return true;
}

void CallGate::Leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
  left_.notify_all();
}

void CallGate::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

int64_t CallGate::WaitUntilEmpty(absl::Time deadline) {
  std::unique_lock lock(mutex_);
  left_.wait_until(lock, absl::ToChronoTime(deadline), [this] { return inside_ == 0; });
  return inside_;
}

}  // namespace longshort
