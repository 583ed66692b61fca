#include "server/call/call_gate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace longshort::server {

bool CallGate::Enter() {
  const MutexLock lock(mutex_);
  if (stage_ == Stage::kClosed) return false;
  ++traffic_.begun;
  ++traffic_.inside;
  return true;
}

void CallGate::Leave(bool unavailable) {
  const MutexLock lock(mutex_);
  --traffic_.inside;
  if (stage_ != Stage::kOpen && unavailable) ++cut_off_;
  left_.NotifyAll();
}

void CallGate::BeginStop() { Reach(Stage::kStopping); }

void CallGate::Close() { Reach(Stage::kClosed); }

void CallGate::Reach(Stage stage) {
  std::vector<std::function<void()>> reached;
  {
    const MutexLock lock(mutex_);
    stage_ = std::max(stage_, stage);
    for (auto watch = watches_.begin(); watch != watches_.end();) {
      if (watch->second.stage > stage_) {
        ++watch;
      } else {
        reached.push_back(std::move(watch->second.on_reached));
        watch = watches_.erase(watch);
      }
    }
  }
  for (const std::function<void()>& on_reached : reached) on_reached();
}

bool CallGate::stopping() const {
  const MutexLock lock(mutex_);
  return stage_ != Stage::kOpen;
}

int64_t CallGate::When(Stage stage, std::function<void()> on_reached) {
  {
    const MutexLock lock(mutex_);
    if (stage_ < stage) {
      watches_[++last_watch_] = {.stage = stage, .on_reached = std::move(on_reached)};
      return last_watch_;
    }
  }
  on_reached();
  return 0;
}

void CallGate::RemoveWatch(int64_t watch) {
  const MutexLock lock(mutex_);
  watches_.erase(watch);
}

CallGate::Traffic CallGate::traffic() const {
  const MutexLock lock(mutex_);
  return traffic_;
}

void CallGate::IdleNote::Set(bool idle) {
  if (idle == idle_) return;
  idle_ = idle;
  const MutexLock lock(gate_.mutex_);
  gate_.traffic_.idle += idle ? 1 : -1;
  gate_.traffic_.begun += idle ? 0 : 1;
}

int64_t CallGate::WaitUntilEmpty(absl::Time deadline) {
  const MutexLock lock(mutex_);
  left_.WaitFor(mutex_, deadline - MonotonicNow(),
                [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return traffic_.inside == 0; });
  return cut_off_ + traffic_.inside;
}

}  // namespace longshort::server
