#include "core/schedule/work_queue.h"

#include <algorithm>

namespace longshort::core {

void WorkQueue::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  Changed();
}

bool WorkQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

bool WorkQueue::over() const {
  const std::lock_guard lock(mutex_);
  return closed_ && IsEmpty();
}

void WorkQueue::EndNow() {
  end_now_.store(true, std::memory_order_relaxed);
  Wake();
}

int64_t WorkQueue::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

std::optional<absl::Duration> WorkQueue::WaitForChange(int64_t seen, absl::Duration max) {
  std::unique_lock lock(mutex_);
  const auto changed = [&] { return changes_ != seen; };
  max = std::min(max, LongestSleep());
  if (max == absl::InfiniteDuration()) {
    changed_.wait(lock, changed);
    return std::nullopt;
  }
  if (changed_.wait_for(lock, absl::ToChronoNanoseconds(max), changed)) return std::nullopt;
  return max;
}

void WorkQueue::Wake() {
  const std::lock_guard lock(mutex_);
  Changed();
}

void WorkQueue::OnModelGivenUp(int worker) {
  const std::lock_guard lock(mutex_);
  probation_.OnModelGivenUp(worker);
  Changed();  // work that was left to it may go to others
}

void WorkQueue::OnModelPassed(int worker) {
  const std::lock_guard lock(mutex_);
  probation_.OnModelPassed(worker);
}

bool WorkQueue::IsOnProbation(int worker) const {
  if (worker_count_ == 1) return false;
  const std::lock_guard lock(mutex_);
  return probation_.IsOnProbation(worker);
}

}  // namespace longshort::core
