#include "core/generation/request_queue.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "core/requests/request_context.h"
#include "core/schedule/refusal.h"

namespace longshort::core {
namespace {

// No event signals that a paused client resumed or left, so the queue polls.
constexpr absl::Duration kPollInterval = absl::Milliseconds(10);

StreamTokens TokensOf(const Job& job) {
  return {.prompt = job.prompt_tokens(), .generated = std::max<int64_t>(0, job.MaxTokens() - job.stream().given_end())};
}

// The minimum number of tokens that the job may have to read: when a cache has all of its prompt that can be reused.
int64_t MinTokensToRead(const Job& job) {
  return job.stream().given_end() - std::max(job.MaxReused(), job.stream().given_begin());
}

// A worker that has not taken work for this long is stuck in a step; no request is left to it.
constexpr absl::Duration kLongestStep = absl::Milliseconds(250);

}  // namespace

absl::Status RequestQueue::Check(const Options& options) {
  LS_RETURN_IF_ERROR(CheckLimits(options.limits));
  return WorkOrder::Check(options.order);
}

absl::Status RequestQueue::Push(std::unique_ptr<Job> job) {
  const RequestContext& context = job->context();
  const absl::Time now = job->times.submitted;
  WorkAttributes attributes = {.priority = context.priority,
                               .client = context.client,
                               .due = std::min(context.deadline, now + options_.patience),
                               .position_in_call = context.position_in_call};
  {
    const MutexLock lock(mutex_);
    if (is_closed()) return ServerIsStopping();
    const bool idle = queue_.empty() && Running() < worker_count_;
    if (!idle) LS_RETURN_IF_ERROR(CheckTime(*job, MinTokensToRead(*job), now));
    attributes.cost = CostOf(*job);
    LS_RETURN_IF_ERROR(CheckRoom(options_.limits, queue_.load(), queue_.LoadOf(attributes.client), attributes));
    queue_.Add(std::move(attributes), std::move(job));
    CountChange();
  }
  WakeWorkers();
  return absl::OkStatus();
}

std::unique_ptr<Job> RequestQueue::TakeFirst(const Taker& taker, Decide decide) {
  const MutexLock lock(mutex_);
  RecordState(taker);
  bool has_room = true;
  const auto decide_now = [&](const Job& job) {
    const Decision decision = decide(job);
    has_room = decision != Decision::kWaitForRoom;
    return decision;
  };
  std::unique_ptr<Job> first;
  if (const auto returned = FirstReturned(taker); returned == returned_.end()) {
    first = TakeFirstWaiting(taker, decide_now);
  } else if (decide_now(**returned) == Decision::kTake) {
    first = std::move(*returned);
    returned_.erase(returned);
  }
  if (first != nullptr) {
    first->entry.worker_ = taker.worker;
    ++workers_[taker.worker].running;
  }
  SetHasRoom(taker.worker, has_room);
  return first;
}

std::unique_ptr<Job> RequestQueue::TakeFirstWaiting(const Taker& taker, Decide decide) {
  bool skipped_any = false;
  Decision decision = Decision::kSkip;
  const std::unique_ptr<Job>* const next =
      queue_.First([&](const std::unique_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        if (!IsFor(taker, *job)) return false;
        decision = decide(*job);
        const bool skips = decision == Decision::kSkip;
        skipped_any |= skips;
        if (job->parked_rows.IsWith(taker.worker)) SetSkippedByOwner(*job, skips);
        return !skips;
      });
  workers_[taker.worker].has_enough_to_read = next == nullptr ? skipped_any : decision == Decision::kWaitToRead;
  if (next == nullptr || decision != Decision::kTake) return nullptr;
  auto taken = queue_.TakeFirst([next](const std::unique_ptr<Job>& job) { return &job == next; });
  QueueEntry& entry = taken->item->entry;
  entry.number_ = taken_++;
  entry.skipped_by_owner_ = false;
  entry.attributes_ = std::move(taken->attributes);
  return std::move(taken->item);
}

bool RequestQueue::HasJobFor(const Taker& taker) {
  const MutexLock lock(mutex_);
  RecordState(taker);
  if (taker.running == 0) SetHasRoom(taker.worker, true);  // it may sleep now, until the queue changes
  return FirstReturned(taker) != returned_.end() ||
         queue_.First([&](const std::unique_ptr<Job>& job)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return IsFor(taker, *job); }) != nullptr;
}

void RequestQueue::OnWorkerFull(int worker) {
  const MutexLock lock(mutex_);
  SetHasRoom(worker, false);
}

void RequestQueue::Return(std::vector<std::unique_ptr<Job>> jobs) {
  const MutexLock lock(mutex_);
  std::move(jobs.begin(), jobs.end(), std::back_inserter(returned_));
  std::sort(returned_.begin(), returned_.end(),
            [](const auto& a, const auto& b) { return a->entry.number() < b->entry.number(); });
  Changed();
}

absl::Status RequestQueue::CheckDeadlineCanBeMet(const Job& job, int64_t tokens_to_read, absl::Time now) const {
  const MutexLock lock(mutex_);
  const bool nothing_else = queue_.empty() && Running() <= worker_count_;  // including this job
  return nothing_else ? absl::OkStatus() : CheckTime(job, tokens_to_read, now);
}

void RequestQueue::Complete(Job& job, absl::Time now) {
  QueueEntry& entry = job.entry;
  if (!entry.attributes_.has_value()) return;
  const StreamTime& worker_time = job.steps.worker_time;
  const MutexLock lock(mutex_);
  queue_.Complete(*entry.attributes_,
                  estimates_.PartOfAll(entry.worker_, TokensOf(job), worker_time.all + job.steps.overhead));
  entry.attributes_.reset();
  const bool prefilled = job.times.prefilled != absl::InfiniteFuture();
  if (prefilled && worker_time.all > absl::ZeroDuration()) {
    estimates_.Of(entry.worker_).Learn(TokensOf(job), worker_time, !queue_.empty(), now);
  }
  Changed();  // its client may have been at its limit of running jobs
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAbandoned(absl::Time now) {
  const auto abandoned = [now](const std::unique_ptr<Job>& job) { return !job->CheckNotAbandoned(now).ok(); };
  const MutexLock lock(mutex_);
  std::vector<std::unique_ptr<Job>> jobs = queue_.RemoveIf(abandoned);
  const auto kept = std::stable_partition(returned_.begin(), returned_.end(), std::not_fn(abandoned));
  std::move(kept, returned_.end(), std::back_inserter(jobs));
  returned_.erase(kept, returned_.end());
  return jobs;
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAll() {
  const MutexLock lock(mutex_);
  std::vector<std::unique_ptr<Job>> jobs = queue_.RemoveAll();
  std::move(returned_.begin(), returned_.end(), std::back_inserter(jobs));
  returned_.clear();
  return jobs;
}

void RequestQueue::SetSteps(int worker, const StepCost& cost, int64_t max_streams) {
  const MutexLock lock(mutex_);
  const bool knew_steps = estimates_.knows_steps();
  estimates_.Of(worker).SetSteps(cost, max_streams);
  // Requests queued before the first estimate had cost 0. Give them their cost, so that they count against the limit.
  if (!knew_steps && estimates_.knows_steps()) {
    queue_.SetCosts([this](const std::unique_ptr<Job>& job)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return CostOf(*job); });
  }
}

int64_t RequestQueue::size() const {
  const MutexLock lock(mutex_);
  return queue_.size() + static_cast<int64_t>(returned_.size()) - WaitingForClients();
}

WorkOrder::Load RequestQueue::load() const {
  const MutexLock lock(mutex_);
  return queue_.load();
}

bool RequestQueue::empty() const {
  const MutexLock lock(mutex_);
  return queue_.empty() && returned_.empty();
}

absl::Duration RequestQueue::MaxSleep() const {
  if (!returned_.empty()) return kPollInterval;
  return queue_.empty() ? absl::InfiniteDuration()
                        : kLongestStep;  // the worker for which a job is reserved may be stuck
}

int64_t RequestQueue::Running() const { return queue_.load().running - WaitingForClients(); }

int64_t RequestQueue::WaitingForClients() const {
  return std::count_if(returned_.begin(), returned_.end(),
                       [](const std::unique_ptr<Job>& job) { return job->paused(); });
}

absl::Duration RequestQueue::CostOf(const Job& job) const { return estimates_.Cost(TokensOf(job)); }

absl::Status RequestQueue::CheckTime(const Job& job, int64_t tokens_to_read, absl::Time now) const {
  const auto fast = estimates_.FastPrefill(tokens_to_read, now);
  if (!fast.has_value()) return absl::OkStatus();
  return CheckDeadline(*fast, job.context().deadline, now);
}

void RequestQueue::RecordState(const Taker& taker) {
  Worker& worker = workers_[taker.worker];
  worker.running = taker.running;
  worker.last_seen = taker.now;
}

bool RequestQueue::CanTakeSoon(const Worker& worker, absl::Time now) const {
  const bool sleeps = worker.running == 0;  // or will sleep soon
  return worker.has_room && (sleeps || worker.last_seen > now - kLongestStep);
}

bool RequestQueue::IsFor(const Taker& taker, const Job& job) const {
  if (!MayTake(taker.worker, job)) return false;
  const auto could_take = [&](int worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return CanTakeSoon(workers_[worker], taker.now) && MayTake(worker, job);
  };
  const std::optional<ParkedPlace>& place = job.parked_rows.place();
  if (place.has_value() && !job.entry.skipped_by_owner_ && could_take(place->worker)) {
    return job.parked_rows.IsWith(taker.worker);
  }
  for (int other = 0; other < worker_count_; ++other) {
    if (!workers_[other].has_enough_to_read && IsBusierThan(taker, other) && could_take(other)) return false;
  }
  return true;
}

bool RequestQueue::IsBusierThan(const Taker& taker, int other) const {
  return estimates_.Load(other, workers_[other].running) < estimates_.Load(taker.worker, taker.running);
}

std::vector<std::unique_ptr<Job>>::iterator RequestQueue::FirstReturned(const Taker& taker) {
  return std::find_if(returned_.begin(), returned_.end(),
                      [&](const std::unique_ptr<Job>& job)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !job->paused() && IsFor(taker, *job); });
}

void RequestQueue::SetHasRoom(int worker, bool has_room) {
  const bool had_room = std::exchange(workers_[worker].has_room, has_room);
  if (had_room && !has_room && worker_count_ > 1) Changed();
}

void RequestQueue::SetSkippedByOwner(Job& job, bool skipped) {
  const bool had_skipped = std::exchange(job.entry.skipped_by_owner_, skipped);
  if (!had_skipped && skipped) Changed();  // another worker may take it
}

}  // namespace longshort::core
