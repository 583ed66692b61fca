#include "core/schedule/work_queue.h"

#include <algorithm>

namespace longshort::core {

void WorkQueue::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  Changed();
}

bool WorkQueue::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

bool WorkQueue::over() const {
  const MutexLock lock(mutex_);
  return closed_ && IsEmpty();
}

void WorkQueue::EndNow() {
  end_now_.store(true, std::memory_order_relaxed);
  Wake();
}

int64_t WorkQueue::changes() const {
  const MutexLock lock(mutex_);
  return changes_;
}

std::optional<absl::Duration> WorkQueue::WaitForChange(int64_t seen, absl::Duration max) {
  const auto changed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return changes_ != seen; };
  const MutexLock lock(mutex_);
  max = std::min(max, MaxSleep());
  if (changed_.WaitFor(mutex_, max, changed)) return std::nullopt;
  return max;
}

void WorkQueue::Wake() {
  const MutexLock lock(mutex_);
  Changed();
}

void WorkQueue::OnModelDiscarded(int worker) {
  const MutexLock lock(mutex_);
  probation_.OnModelDiscarded(worker);
  Changed();  // work that was left to it may go to others
}

void WorkQueue::OnModelPassed(int worker) {
  const MutexLock lock(mutex_);
  probation_.OnModelPassed(worker);
}

bool WorkQueue::IsOnProbation(int worker) const {
  if (worker_count_ == 1) return false;
  const MutexLock lock(mutex_);
  return probation_.IsOnProbation(worker);
}

}  // namespace longshort::core
