#include "core/generation/request_queue.h"

#include <utility>

#include "base/status_macros.h"
#include "core/requests/request_context.h"

namespace longshort::core {
namespace {

// No event signals that a paused client resumed or left, so the queue polls.
constexpr absl::Duration kPollInterval = absl::Milliseconds(10);

}  // namespace

absl::Status RequestQueue::Push(std::unique_ptr<Job> job) {
  {
    const MutexLock lock(mutex_);
    if (is_closed()) return ServerIsStopping();
    LS_RETURN_IF_ERROR(jobs_.Add(std::move(job), placement_.FreeStreams()));
    CountChange();
  }
  WakeWorkers();
  return absl::OkStatus();
}

void RequestQueue::OnWorkerStarted(const Taker& taker) {
  const MutexLock lock(mutex_);
  placement_.Record(taker);
}

template <typename Attempt>
auto RequestQueue::AfterSearches(Decide decide, Search search, Attempt attempt) {
  MutexLock lock(mutex_);
  for (bool searched = false;; searched = true) {
    const Job* unknown = nullptr;
    auto result = attempt([&](const Job& job) {
      const Decision decision = decide(job);
      if (decision == Decision::kSearch) unknown = &job;
      return decision;
    });
    if (unknown == nullptr) {
      if (searched && worker_count_ > 1) Changed();  // others have passed over the jobs
      return result;
    }
    unknown->entry.is_searched_ = true;
    lock.Unlock();
    search(*unknown);
    lock.Lock();
    unknown->entry.is_searched_ = false;
  }
}

std::unique_ptr<Job> RequestQueue::TakeFirst(const Taker& taker, Decide decide, Search search) {
  return AfterSearches(decide, search, [&](Decide ask) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    placement_.Record(taker);
    Decision decision = Decision::kSkip;
    const auto decide_now = [&](const Job& job) { return decision = ask(job); };
    std::unique_ptr<Job> first;
    Job* const returned = jobs_.FirstReturned(
        [&](Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return placement_.IsFor(taker, job); });
    if (returned == nullptr) {
      first = TakeFirstInOrder(taker, decide_now);
    } else if (decide_now(*returned) == Decision::kTake) {
      first = jobs_.TakeReturned(*returned, taker.worker);
    }
    if (decision == Decision::kSearch) return first;
    if (first != nullptr) placement_.OnTaken(taker.worker);
    SetHasRoom(taker.worker, decision != Decision::kWaitForRoom);
    return first;
  });
}

std::unique_ptr<Job> RequestQueue::TakeFirstInOrder(const Taker& taker, Decide decide) {
  bool skipped_any = false;
  Decision decision = Decision::kSkip;
  const Job* const next = jobs_.FirstInOrder([&](Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!placement_.IsFor(taker, job) || displacement_.KeepsRoomFrom(taker, job)) return false;
    decision = decide(job);
    if (decision == Decision::kSearch) return true;
    const bool skips = decision == Decision::kSkip;
    skipped_any |= skips;
    // Another worker may take it now.
    if (job.parked_rows.IsWith(taker.worker) && Placement::SetSkippedByOwner(job, skips)) Changed();
    return !skips;
  });
  if (decision == Decision::kSearch) return nullptr;
  placement_.SetHasEnoughToRead(taker.worker, next == nullptr ? skipped_any : decision == Decision::kWaitToRead);
  if (next == nullptr) return nullptr;
  jobs_.BeginTurn(*next);
  if (decision != Decision::kTake) return nullptr;
  displacement_.OnTaken(taker);
  return jobs_.TakeInOrder(*next, taker.worker);
}

bool RequestQueue::HasJobFor(const Taker& taker) {
  const MutexLock lock(mutex_);
  placement_.Record(taker);
  if (taker.running == 0) SetHasRoom(taker.worker, true);  // it may sleep now, until the queue changes
  const auto is_for = [&](Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return placement_.IsFor(taker, job); };
  if (jobs_.FirstReturned(is_for) != nullptr) return true;
  const Job* const first = jobs_.FirstInOrder(is_for);
  if (first != nullptr) jobs_.BeginTurn(*first);
  return first != nullptr;
}

void RequestQueue::OnWorkerFull(int worker) {
  const MutexLock lock(mutex_);
  SetHasRoom(worker, false);
}

const Job* RequestQueue::FindDisplaced(const Taker& taker, Decide decide, absl::Span<const Job* const> running,
                                       Search search) {
  return AfterSearches(decide, search, [&](Decide ask) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> const Job* {
    if (jobs_.active_clients() < 2) return nullptr;  // a client that is alone displaces nothing
    Decision decision = Decision::kSkip;
    const Job* const next = jobs_.FirstInOrder([&](Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (!displacement_.IsBelowShare(job.context().client) || !placement_.IsFor(taker, job)) return false;
      decision = ask(job);
      return decision != Decision::kSkip;
    });
    if (next == nullptr || decision == Decision::kSearch) return nullptr;
    jobs_.BeginTurn(*next);
    return decision == Decision::kWaitToRead ? nullptr : displacement_.Choose(*next, running);
  });
}

void RequestQueue::Requeue(std::unique_ptr<Job> job, const Taker& taker) {
  const MutexLock lock(mutex_);
  displacement_.OnDisplaced(taker);
  jobs_.Requeue(std::move(job));
  Changed();
}

void RequestQueue::Return(std::vector<std::unique_ptr<Job>> jobs) {
  const MutexLock lock(mutex_);
  jobs_.Return(std::move(jobs));
  Changed();
}

absl::Status RequestQueue::CheckDeadlineCanBeMet(const Job& job, int64_t tokens_to_read, absl::Time now) const {
  const MutexLock lock(mutex_);
  return jobs_.CheckDeadlineCanBeMet(job, tokens_to_read, now);
}

void RequestQueue::SetSteps(int worker, const StepCost& cost, int64_t max_streams) {
  const MutexLock lock(mutex_);
  jobs_.SetSteps(worker, cost, max_streams);
}

void RequestQueue::Complete(Job& job, absl::Time now) {
  const MutexLock lock(mutex_);
  if (jobs_.Complete(job, now)) Changed();  // its client may have been at its limit of running jobs
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAbandoned(absl::Time now) {
  const MutexLock lock(mutex_);
  return jobs_.RemoveIf([now](const Job& job) { return !job.entry.is_searched() && !job.CheckNotAbandoned(now).ok(); });
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAll() {
  const MutexLock lock(mutex_);
  return jobs_.RemoveIf([](const Job& job) { return !job.entry.is_searched(); });
}

int64_t RequestQueue::size() const {
  const MutexLock lock(mutex_);
  return jobs_.size();
}

WorkOrder::Load RequestQueue::load() const {
  const MutexLock lock(mutex_);
  return jobs_.load();
}

WorkOrder::Load RequestQueue::LoadOf(const std::string& client) const {
  const MutexLock lock(mutex_);
  return jobs_.LoadOf(client);
}

int64_t RequestQueue::active_clients() const {
  const MutexLock lock(mutex_);
  return jobs_.active_clients();
}

bool RequestQueue::empty() const {
  const MutexLock lock(mutex_);
  return !jobs_.any_in_order() && !jobs_.any_returned();
}

bool RequestQueue::IsEmpty() const {
  return !jobs_.any_in_order() && !jobs_.any_returned() && jobs_.load().running == 0;
}

absl::Duration RequestQueue::MaxSleep() const {
  if (jobs_.any_returned()) return kPollInterval;
  // The worker to which a job is left may be stuck.
  return jobs_.any_in_order() ? Placement::kLongestStep : absl::InfiniteDuration();
}

void RequestQueue::SetHasRoom(int worker, bool has_room) {
  if (placement_.SetHasRoom(worker, has_room)) Changed();
}

}  // namespace longshort::core
