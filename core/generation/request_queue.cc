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

// As TokensOf, without those that were read.
StreamTokens RestOf(const Job& job) {
  const TokenStream& stream = job.stream();
  return {.prompt = std::max<int64_t>(0, stream.given_end() - std::max(stream.read(), stream.given_begin())),
          .generated = std::max<int64_t>(0, job.MaxTokens() - std::max(stream.read(), stream.given_end()))};
}

// The minimum number of tokens that the job may have to read: when a cache has all of its prompt that can be reused.
int64_t MinTokensToRead(const Job& job) {
  return job.stream().given_end() - std::max(job.MaxReused(), job.stream().given_begin());
}

// A worker that has not taken work for this long is stuck in a step; no request is left to it.
constexpr absl::Duration kLongestStep = absl::Milliseconds(250);

// The cost of a token until steps were measured: that of a slow machine, so that long requests do not fill the queue
// for an hour before their cost is known.
constexpr absl::Duration kAssumedTokenCost = absl::Milliseconds(5);
// A shorter limit of the waiting time does not apply to such costs: most machines are faster.
constexpr absl::Duration kMinLimitOfUnknown = absl::Seconds(10);

// How long a worker keeps room for clients below their share, after one of them displaced a job or used that room.
constexpr absl::Duration kKeepRoom = absl::Seconds(2);

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
    const auto costs = CostsOf(*job);
    attributes.cost = costs.cost;
    attributes.start_cost = costs.start_cost;
    LS_RETURN_IF_ERROR(CheckRoomFor(attributes));
    queue_.Add(std::move(attributes), std::move(job));
    CountChange();
  }
  WakeWorkers();
  return absl::OkStatus();
}

void RequestQueue::OnWorkerStarted(const Taker& taker) {
  const MutexLock lock(mutex_);
  RecordState(taker);
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
        if (!IsFor(taker, *job) || KeepsRoomFrom(taker, *job)) return false;
        decision = decide(*job);
        const bool skips = decision == Decision::kSkip;
        skipped_any |= skips;
        if (job->parked_rows.IsWith(taker.worker)) SetSkippedByOwner(*job, skips);
        return !skips;
      });
  workers_[taker.worker].has_enough_to_read = next == nullptr ? skipped_any : decision == Decision::kWaitToRead;
  if (next == nullptr || decision != Decision::kTake) return nullptr;
  auto taken = queue_.TakeFirst([next](const std::unique_ptr<Job>& job) { return &job == next; });
  Worker& worker = workers_[taker.worker];
  if (taker.now < worker.keeps_room_until && taker.running + 1 >= worker.full_with) {
    worker.keeps_room_until = taker.now + kKeepRoom;
  }
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

const Job* RequestQueue::FindDisplaced(const Taker& taker, Decide decide, absl::Span<const Job* const> running) {
  const MutexLock lock(mutex_);
  if (queue_.active_clients() < 2) return nullptr;  // a client that is alone displaces nothing
  const std::unique_ptr<Job>* const first =
      queue_.First([&](const std::unique_ptr<Job>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return IsBelowShare(job->context().client) && IsFor(taker, *job) && decide(*job) != Decision::kSkip;
      });
  if (first == nullptr || decide(**first) == Decision::kWaitToRead) return nullptr;
  const RequestContext& next = (*first)->context();
  const bool runs_nothing = queue_.LoadOf(next.client).running == 0;
  const Job* displaced = nullptr;
  int64_t most = ShareOfRunning();
  for (auto job = running.rbegin(); job != running.rend(); ++job) {
    const RequestContext& context = (*job)->context();
    const int64_t runs = queue_.LoadOf(context.client).running;
    if (runs <= most || (context.priority > next.priority && !runs_nothing)) continue;
    displaced = *job;
    most = runs;
  }
  return displaced;
}

void RequestQueue::Requeue(std::unique_ptr<Job> job, const Taker& taker) {
  const MutexLock lock(mutex_);
  Worker& worker = workers_[taker.worker];
  worker.full_with = taker.running;
  worker.keeps_room_until = taker.now + kKeepRoom;
  WorkAttributes attributes = *job->entry.attributes_;
  Charge(*job);
  const auto costs = CostsOf(*job);
  attributes.cost = costs.cost;
  attributes.start_cost = costs.start_cost;
  queue_.Add(std::move(attributes), std::move(job));
  Changed();
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
  Charge(job);
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
  // Requests queued before the first estimate have an assumed cost. Give them their own.
  if (!knew_steps && estimates_.knows_steps()) {
    queue_.SetCosts([this](const std::unique_ptr<Job>& job)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return CostsOf(*job); });
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

WorkOrder::Load RequestQueue::LoadOf(const std::string& client) const {
  const MutexLock lock(mutex_);
  return queue_.LoadOf(client);
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

FairQueue<std::unique_ptr<Job>>::Costs RequestQueue::CostsOf(const Job& job) const {
  const StreamTokens tokens = RestOf(job);
  if (estimates_.knows_steps()) return {estimates_.Cost(tokens), estimates_.PrefillCost(tokens)};
  return {kAssumedTokenCost * (tokens.prompt + tokens.generated), kAssumedTokenCost * tokens.prompt};
}

absl::Status RequestQueue::CheckRoomFor(WorkAttributes next) const {
  WorkOrder::Load ahead = queue_.Ahead(next);
  WorkOrder::Load of_client = queue_.LoadOf(next.client);
  if (ahead.waiting + next.position_in_call.count <= FreeStreams()) {
    // All of it starts as soon as its prompts can be read.
    next.cost = next.start_cost;
    ahead.waiting_cost = ahead.waiting_start_cost;
    of_client.waiting_cost = of_client.waiting_start_cost;
  }
  const RefusalBounds refusal = {.queue_depth = queue_.load().waiting};
  WaitingLimits limits = options_.limits;
  if (estimates_.knows_steps()) return CheckRoom(limits, ahead, of_client, next, refusal);
  for (absl::Duration* limit : {&limits.max_queued_cost, &limits.max_queued_cost_per_client}) {
    *limit = std::max(*limit, kMinLimitOfUnknown);
  }
  absl::Status status = CheckRoom(limits, ahead, of_client, next, refusal);
  // The assumed cost may be minutes; the true one is known after a few steps.
  if (!status.ok()) SetRefusal(status, {.retry_after = kMinRetryDelayOfUnknown, .queue_depth = refusal.queue_depth});
  return status;
}

int64_t RequestQueue::FreeStreams() const {
  int64_t free = 0;
  for (const Worker& worker : workers_) {
    if (worker.has_room && !worker.has_enough_to_read)
      free += std::max<int64_t>(0, worker.max_streams - worker.running);
  }
  return free;
}

int64_t RequestQueue::ShareOfRunning() const {
  return std::max<int64_t>(1, Running() / std::max<int64_t>(1, queue_.active_clients()));
}

bool RequestQueue::KeepsRoomFrom(const Taker& taker, const Job& job) const {
  const Worker& worker = workers_[taker.worker];
  if (taker.running == 0 || taker.now >= worker.keeps_room_until || taker.running + 1 < worker.full_with) return false;
  // The shares as they were before a job was displaced for another client, which may have no work just now.
  const int64_t share = (Running() + 1) / std::max<int64_t>(2, queue_.active_clients());
  return queue_.LoadOf(job.context().client).running >= std::max<int64_t>(1, share);
}

void RequestQueue::Charge(Job& job) {
  QueueEntry& entry = job.entry;
  const absl::Duration all = job.steps.worker_time.all + job.steps.overhead;
  queue_.Complete(*entry.attributes_, estimates_.PartOfAll(entry.worker_, TokensOf(job), all - entry.charged_));
  entry.charged_ = all;
  entry.attributes_.reset();
}

absl::Status RequestQueue::CheckTime(const Job& job, int64_t tokens_to_read, absl::Time now) const {
  const auto fast = estimates_.FastPrefill(tokens_to_read, now);
  if (!fast.has_value()) return absl::OkStatus();
  return CheckDeadline(*fast, job.context().deadline, now);
}

void RequestQueue::RecordState(const Taker& taker) {
  Worker& worker = workers_[taker.worker];
  worker.running = taker.running;
  worker.max_streams = taker.max_streams;
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
