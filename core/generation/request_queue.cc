#include "core/generation/request_queue.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "core/schedule/deadline_check.h"

namespace longshort {
namespace {

// Nobody is told when a client that took nothing takes something again, or gives up; so often it is looked at.
constexpr absl::Duration kLookAgain = absl::Milliseconds(10);

StreamTokens TokensOf(const Job& job) {
  return {.prompt = job.prompt_tokens(),
          .generated = std::max<int64_t>(0, job.MostTokens() - job.stream().given_end())};
}

// Where a cache has all of its prompt that may be found there.
int64_t FewestToRead(const Job& job) {
  return job.stream().given_end() - std::max(job.MostReused(), job.stream().given_begin());
}

// A worker that has not asked for so long is stuck in a step, and nobody should wait for it.
constexpr absl::Duration kLongestStep = absl::Milliseconds(250);

}  // namespace

absl::Status RequestQueue::Check(const Options& options) {
  LS_RETURN_IF_ERROR(CheckLimits(options.limits));
  return WorkOrder::Check(options.order);
}

absl::Status RequestQueue::Push(std::unique_ptr<Job> job) {
  const RequestContext& context = job->context();
  const absl::Time now = job->times.submitted;
  Ticket ticket = {.priority = context.priority,
                   .client = context.client,
                   .due = std::min(context.deadline, now + options_.patience),
                   .part = context.part};
  {
    std::lock_guard lock(mutex_);
    if (closed_) return absl::UnavailableError("the server is stopping and takes no more requests");
    const bool idle = line_.empty() && Running() < WorkerCount();
    if (!idle) LS_RETURN_IF_ERROR(CheckTime(*job, FewestToRead(*job), now));
    ticket.cost = CostOf(*job);
    LS_RETURN_IF_ERROR(CheckRoom(options_.limits, line_.load(), line_.LoadOf(ticket.client), ticket));
    line_.Add(std::move(ticket), std::move(job));
    ++changes_;
  }
  changed_.notify_all();  // who wakes finds the mutex free
  return absl::OkStatus();
}

std::unique_ptr<Job> RequestQueue::TakeFirst(const Taker& taker, absl::FunctionRef<bool(const Job&)> fits,
                                             absl::FunctionRef<bool(const Job&)> soon,
                                             absl::FunctionRef<bool(const Job&)> stands_aside) {
  std::lock_guard lock(mutex_);
  NoteAsking(taker);
  bool has_room = true;
  const auto fits_now = [&](const Job& job) { return has_room = fits(job); };
  std::unique_ptr<Job> first;
  if (const auto returned = FirstReturned(taker); returned == returned_.end()) {
    first = TakeFirstWaiting(taker, fits_now, soon, stands_aside);
  } else if (fits_now(**returned)) {
    first = std::move(*returned);
    returned_.erase(returned);
  }
  if (first != nullptr) {
    first->worker = taker.worker;
    ++workers_[taker.worker].running;
  }
  SetHasRoom(taker.worker, has_room);
  return first;
}

std::unique_ptr<Job> RequestQueue::TakeFirstWaiting(const Taker& taker, absl::FunctionRef<bool(const Job&)> fits,
                                                    absl::FunctionRef<bool(const Job&)> soon,
                                                    absl::FunctionRef<bool(const Job&)> stands_aside) {
  bool any_stood_aside = false;
  const auto is_next = [&](const std::unique_ptr<Job>& job) {
    if (!IsFor(taker, *job)) return false;
    const bool aside = stands_aside(*job);
    any_stood_aside |= aside;
    if (job->parked.has_value() && job->parked->worker == taker.worker) SetStoodAsideAtHome(*job, aside);
    return !aside;
  };
  const std::unique_ptr<Job>* const first = line_.First(is_next);
  Worker& worker = workers_[taker.worker];
  worker.has_enough_to_read = first == nullptr ? any_stood_aside : !soon(**first);
  if (first == nullptr || worker.has_enough_to_read || !fits(**first)) return nullptr;
  auto taken = line_.TakeFirst(is_next);
  taken->thing->number = taken_++;
  taken->thing->stood_aside_at_home = false;
  taken->thing->charge = std::move(taken->ticket);
  return std::move(taken->thing);
}

bool RequestQueue::HasJobFor(const Taker& taker) {
  std::lock_guard lock(mutex_);
  NoteAsking(taker);
  if (taker.running == 0) SetHasRoom(taker.worker, true);  // it may sleep now, and asks again only when something comes
  return FirstReturned(taker) != returned_.end() ||
         line_.First([&](const std::unique_ptr<Job>& job) { return IsFor(taker, *job); }) != nullptr;
}

void RequestQueue::OnWorkerFull(int worker) {
  std::lock_guard lock(mutex_);
  SetHasRoom(worker, false);
}

void RequestQueue::OnModelGivenUp(int worker) {
  std::lock_guard lock(mutex_);
  trials_.OnModelGivenUp(worker);
  Changed();  // what was left to it may be another's
}

void RequestQueue::OnModelPassed(int worker) {
  std::lock_guard lock(mutex_);
  trials_.OnModelPassed(worker);
}

bool RequestQueue::IsOnTrial(int worker) const {
  if (WorkerCount() == 1) return false;
  std::lock_guard lock(mutex_);
  return trials_.IsOnTrial(worker);
}

void RequestQueue::Return(std::vector<std::unique_ptr<Job>> jobs) {
  std::lock_guard lock(mutex_);
  std::move(jobs.begin(), jobs.end(), std::back_inserter(returned_));
  std::sort(returned_.begin(), returned_.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
  Changed();
}

absl::Status RequestQueue::WhyHopeless(const Job& job, int64_t tokens_to_read, absl::Time now) const {
  std::lock_guard lock(mutex_);
  const bool nothing_else = line_.empty() && Running() <= WorkerCount();  // itself among them
  return nothing_else ? absl::OkStatus() : CheckTime(job, tokens_to_read, now);
}

void RequestQueue::Settle(Job& job, absl::Time now) {
  if (!job.charge.has_value()) return;
  std::lock_guard lock(mutex_);
  line_.Settle(*job.charge, estimates_.PartOfAll(job.worker, TokensOf(job), job.worker_time.all + job.overhead));
  job.charge.reset();
  const bool prefilled = job.times.prefilled != absl::InfiniteFuture();
  if (prefilled && job.worker_time.all > absl::ZeroDuration()) {
    estimates_.Learn(job.worker, TokensOf(job), job.worker_time, !line_.empty(), now);
  }
  Changed();  // its client may have as much running as it may
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAbandoned(absl::Time now) {
  const auto abandoned = [now](const std::unique_ptr<Job>& job) { return !job->WhyAbandoned(now).ok(); };
  std::lock_guard lock(mutex_);
  std::vector<std::unique_ptr<Job>> jobs = line_.RemoveIf(abandoned);
  const auto kept = std::stable_partition(returned_.begin(), returned_.end(), std::not_fn(abandoned));
  std::move(kept, returned_.end(), std::back_inserter(jobs));
  returned_.erase(kept, returned_.end());
  return jobs;
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAll() {
  std::lock_guard lock(mutex_);
  std::vector<std::unique_ptr<Job>> jobs = line_.RemoveAll();
  std::move(returned_.begin(), returned_.end(), std::back_inserter(jobs));
  returned_.clear();
  return jobs;
}

void RequestQueue::SetSteps(int worker, const StepCost& cost, int64_t max_streams) {
  std::lock_guard lock(mutex_);
  const bool knew_steps = estimates_.knows_steps();
  estimates_.SetSteps(worker, cost, max_streams);
  // What came before counted as nothing; else all of it would wait beside what may.
  if (!knew_steps && estimates_.knows_steps()) {
    line_.SetCosts([this](const std::unique_ptr<Job>& job) { return CostOf(*job); });
  }
}

int64_t RequestQueue::size() const {
  std::lock_guard lock(mutex_);
  return line_.size() + static_cast<int64_t>(returned_.size()) - WaitingForClients();
}

WorkOrder::Load RequestQueue::load() const {
  std::lock_guard lock(mutex_);
  return line_.load();
}

bool RequestQueue::empty() const {
  std::lock_guard lock(mutex_);
  return line_.empty() && returned_.empty();
}

void RequestQueue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  Changed();
}

bool RequestQueue::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

bool RequestQueue::over() const {
  std::lock_guard lock(mutex_);
  return closed_ && line_.empty() && returned_.empty() && line_.load().running == 0;
}

int64_t RequestQueue::changes() const {
  std::lock_guard lock(mutex_);
  return changes_;
}

void RequestQueue::WaitForChange(int64_t seen, absl::Duration most) {
  std::unique_lock lock(mutex_);
  const auto changed = [&] { return changes_ != seen; };
  if (!line_.empty()) most = std::min(most, kLongestStep);  // a worker to which some is left may be stuck
  if (!returned_.empty()) most = std::min(most, kLookAgain);
  if (most == absl::InfiniteDuration()) {
    changed_.wait(lock, changed);
  } else {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(most), changed);
  }
}

void RequestQueue::Wake() {
  std::lock_guard lock(mutex_);
  Changed();
}

int64_t RequestQueue::Running() const { return line_.load().running - WaitingForClients(); }

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

void RequestQueue::NoteAsking(const Taker& taker) {
  Worker& worker = workers_[taker.worker];
  worker.running = taker.running;
  worker.asked = taker.now;
}

bool RequestQueue::IsOpen(const Worker& worker, absl::Time now) const {
  const bool sleeps = worker.running == 0;  // or will do so as soon as it has nothing to do
  return worker.has_room && (sleeps || worker.asked > now - kLongestStep);
}

bool RequestQueue::IsFor(const Taker& taker, const Job& job) const {
  if (!MayTake(taker.worker, job)) return false;
  const auto could_take = [&](int worker) { return IsOpen(workers_[worker], taker.now) && MayTake(worker, job); };
  if (job.parked.has_value() && !job.stood_aside_at_home && could_take(job.parked->worker)) {
    return job.parked->worker == taker.worker;
  }
  for (int other = 0; other < WorkerCount(); ++other) {
    if (!workers_[other].has_enough_to_read && HasMoreToDo(taker, other) && could_take(other)) return false;
  }
  return true;
}

bool RequestQueue::HasMoreToDo(const Taker& taker, int other) const {
  return estimates_.Load(other, workers_[other].running) < estimates_.Load(taker.worker, taker.running);
}

std::vector<std::unique_ptr<Job>>::iterator RequestQueue::FirstReturned(const Taker& taker) {
  return std::find_if(returned_.begin(), returned_.end(),
                      [&](const std::unique_ptr<Job>& job) { return !job->paused() && IsFor(taker, *job); });
}

void RequestQueue::SetHasRoom(int worker, bool has_room) {
  const bool had_room = std::exchange(workers_[worker].has_room, has_room);
  if (had_room && !has_room && WorkerCount() > 1) Changed();
}

void RequestQueue::SetStoodAsideAtHome(Job& job, bool stood_aside) {
  const bool had_stood_aside = std::exchange(job.stood_aside_at_home, stood_aside);
  if (!had_stood_aside && stood_aside) Changed();  // another may take it
}

void RequestQueue::Changed() {
  ++changes_;
  changed_.notify_all();
}

}  // namespace longshort
