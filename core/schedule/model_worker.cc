#include "core/schedule/model_worker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status_macros.h"

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

absl::Status ModelWorker::Build() {
  LS_RETURN_IF_ERROR(runner_->Build());
  has_model_ = true;
  return absl::OkStatus();
}

absl::Status ModelWorker::Start() {
  return thread_.Start("a worker's thread", [this] { Work(); });
}

void ModelWorker::Post(Task task) {
  {
    MutexLock lock(mutex_);
    if (!takes_tasks_) {
      lock.Unlock();
      return task(nullptr);
    }
    tasks_.push_back(std::move(task));
  }
  queue_.Wake();
}

bool ModelWorker::WaitUntilEnded(absl::Time deadline) {
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; };
  const MutexLock lock(mutex_);
  const absl::Duration left = deadline - clock_.Now();
  return left > absl::ZeroDuration() ? has_ended_.WaitFor(mutex_, left, ended) : ended_;
}

void ModelWorker::Work() {
  while (true) {
    // Any change since the last round may be work for this round.
    if (const int64_t changes = queue_.changes(); std::exchange(changes_seen_, changes) != changes) {
      idle_ = absl::ZeroDuration();
      resting_ = false;
    }
    RunTasks();
    const absl::Time next_round = RunRound();
    if (next_round == absl::InfinitePast()) {
      idle_ = absl::ZeroDuration();
      resting_ = false;
      if (clock_.Now() >= next_maintenance_) next_maintenance_ = runner_->RunMaintenance();
      continue;
    }
    if (queue_.over()) break;
    Sleep(next_round);
  }
  {
    const MutexLock lock(mutex_);
    takes_tasks_ = false;
  }
  RunTasks();
  const MutexLock lock(mutex_);
  ended_ = true;  // after this, objects that the tasks use may be destroyed
  has_ended_.NotifyAll();
}

void ModelWorker::Sleep(absl::Time next_round) {
  next_maintenance_ = runner_->RunMaintenance();
  absl::Duration sleep = std::max(std::min(next_round, next_maintenance_) - clock_.Now(), absl::ZeroDuration());
  const bool may_rest = has_model_ && !resting_ && next_round == absl::InfiniteFuture();
  if (may_rest) sleep = std::min(sleep, kIdleTimeBeforeRest);
  const std::optional<absl::Duration> slept = queue_.WaitForChange(changes_seen_, sleep);
  if (!slept.has_value()) return;
  idle_ += *slept;
  if (!may_rest || idle_ < kIdleTimeBeforeRest) return;
  resting_ = true;
  runner_->Rest();
}

absl::Time ModelWorker::RunRound() {
  const bool end_now = queue_.ends_now();
  if (!has_model_ && !Rebuild(end_now)) return replacement_.next_try();
  const absl::Time next_round = runner_->RunRound(end_now);
  if (!runner_->broken()) return next_round;
  DiscardModel();
  return absl::InfinitePast();
}

void ModelWorker::DiscardModel() {
  const bool on_probation = queue_.IsOnProbation(number_);
  runner_->FreeModel();
  has_model_ = false;
  replacement_.OnModelDiscarded(on_probation, clock_.Now());
  queue_.OnModelDiscarded(number_);
  if (on_probation) runner_->OnNoModel();
}

bool ModelWorker::Rebuild(bool end_now) {
  const absl::Time now = clock_.Now();
  if (now >= replacement_.next_try()) {
    const absl::Status built = Build();
    runner_->OnRebuilt(built);
    if (built.ok()) return true;
    replacement_.OnRebuildFailed(now);
    runner_->OnNoModel();
  }
  runner_->EndAbandoned(end_now);
  return false;
}

void ModelWorker::RunTasks() {
  MutexLock lock(mutex_);
  while (!tasks_.empty()) {
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    ModelRunner* const runner = takes_tasks_ ? runner_.get() : nullptr;
    lock.Unlock();
    task(runner);
    task = nullptr;  // destroys what it owns without the lock
    lock.Lock();
  }
}

absl::Status ModelWorkers::Add(std::unique_ptr<ModelRunner> runner) {
  auto worker = std::make_unique<ModelWorker>(static_cast<int>(size()), std::move(runner), queue_, clock_);
  LS_RETURN_IF_ERROR(worker->Build());
  LS_RETURN_IF_ERROR(worker->Start());
  workers_.push_back(std::move(worker));
  return absl::OkStatus();
}

void ModelWorkers::Drain(absl::Time deadline) {
  // First, so that no work begins between the two if no time is left.
  if (deadline <= clock_.Now()) queue_.EndNow();
  queue_.Close();
  for (const std::unique_ptr<ModelWorker>& worker : workers_) {
    if (worker->WaitUntilEnded(deadline)) continue;
    queue_.EndNow();
    worker->WaitUntilEnded(absl::InfiniteFuture());
  }
}

}  // namespace longshort::core
