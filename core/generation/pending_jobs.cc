#include "core/generation/pending_jobs.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "core/requests/request_context.h"

namespace longshort::core {
namespace {

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

// The cost of a token until steps were measured: that of a slow machine, so that long requests do not fill the queue
// for an hour before their cost is known.
constexpr absl::Duration kAssumedTokenCost = absl::Milliseconds(5);
// A shorter limit of the waiting time does not apply to such costs: most machines are faster.
constexpr absl::Duration kMinLimitOfUnknown = absl::Seconds(10);

}  // namespace

absl::Status PendingJobs::Check(const Options& options) {
  LS_RETURN_IF_ERROR(CheckLimits(options.limits));
  return WorkOrder::Check(options.order);
}

absl::Status PendingJobs::Add(std::unique_ptr<Job>&& job, int64_t free_streams) {
  const RequestContext& context = job->context();
  const absl::Time now = job->times.submitted;
  const bool idle = queue_.empty() && Running() < workers_;
  if (!idle) LS_RETURN_IF_ERROR(CheckTime(*job, MinTokensToRead(*job), now));
  const Costs costs = CostsOf(*job);
  WorkAttributes attributes = {.priority = context.priority,
                               .client = context.client,
                               .due = std::min(context.deadline, now + options_.patience),
                               .cost = costs.cost,
                               .start_cost = costs.start_cost,
                               .position_in_call = context.position_in_call};
  LS_RETURN_IF_ERROR(CheckRoomFor(attributes, free_streams));
  queue_.Add(std::move(attributes), std::move(job));
  return absl::OkStatus();
}

void PendingJobs::Requeue(std::unique_ptr<Job> job) {
  WorkAttributes attributes = *job->entry.attributes_;
  Charge(*job);
  const Costs costs = CostsOf(*job);
  attributes.cost = costs.cost;
  attributes.start_cost = costs.start_cost;
  queue_.Add(std::move(attributes), std::move(job));
}

void PendingJobs::Return(std::vector<std::unique_ptr<Job>> jobs) {
  std::move(jobs.begin(), jobs.end(), std::back_inserter(returned_));
  std::sort(returned_.begin(), returned_.end(),
            [](const auto& a, const auto& b) { return a->entry.number() < b->entry.number(); });
}

Job* PendingJobs::FirstReturned(Suits suits) const {
  const auto first = std::find_if(returned_.begin(), returned_.end(),
                                  [&](const std::unique_ptr<Job>& job) { return !job->paused() && suits(*job); });
  return first == returned_.end() ? nullptr : first->get();
}

Job* PendingJobs::FirstInOrder(Suits suits) const {
  const std::unique_ptr<Job>* const first = queue_.Peek([&](const std::unique_ptr<Job>& job) { return suits(*job); });
  return first == nullptr ? nullptr : first->get();
}

void PendingJobs::BeginTurn(const Job& job) {
  queue_.First([&](const std::unique_ptr<Job>& waiting) { return waiting.get() == &job; });
}

std::unique_ptr<Job> PendingJobs::TakeReturned(const Job& job, int worker) {
  const auto returned = std::find_if(returned_.begin(), returned_.end(),
                                     [&](const std::unique_ptr<Job>& waiting) { return waiting.get() == &job; });
  std::unique_ptr<Job> taken = std::move(*returned);
  returned_.erase(returned);
  taken->entry.worker_ = worker;
  return taken;
}

std::unique_ptr<Job> PendingJobs::TakeInOrder(const Job& job, int worker) {
  auto taken = queue_.TakeFirst([&](const std::unique_ptr<Job>& waiting) { return waiting.get() == &job; });
  QueueEntry& entry = taken->item->entry;
  entry.number_ = taken_++;
  entry.skipped_by_owner_ = false;
  entry.attributes_ = std::move(taken->attributes);
  entry.worker_ = worker;
  return std::move(taken->item);
}

absl::Status PendingJobs::CheckDeadlineCanBeMet(const Job& job, int64_t tokens_to_read, absl::Time now) const {
  const bool nothing_else = queue_.empty() && Running() <= workers_;  // including this job
  return nothing_else ? absl::OkStatus() : CheckTime(job, tokens_to_read, now);
}

bool PendingJobs::Complete(Job& job, absl::Time now) {
  const QueueEntry& entry = job.entry;
  if (!entry.attributes_.has_value()) return false;
  Charge(job);
  const StreamTime& worker_time = job.steps.worker_time;
  const bool prefilled = job.times.prefilled != absl::InfiniteFuture();
  if (prefilled && worker_time.all > absl::ZeroDuration()) {
    estimates_.Of(entry.worker_).Learn(TokensOf(job), worker_time, !queue_.empty(), now);
  }
  return true;
}

std::vector<std::unique_ptr<Job>> PendingJobs::RemoveIf(Suits suits) {
  const auto leaves = [&](const std::unique_ptr<Job>& job) { return suits(*job); };
  std::vector<std::unique_ptr<Job>> jobs = queue_.RemoveIf(leaves);
  const auto kept = std::stable_partition(returned_.begin(), returned_.end(), std::not_fn(leaves));
  std::move(kept, returned_.end(), std::back_inserter(jobs));
  returned_.erase(kept, returned_.end());
  return jobs;
}

void PendingJobs::SetSteps(int worker, const StepCost& cost, int64_t max_streams) {
  const bool knew_steps = estimates_.knows_steps();
  estimates_.Of(worker).SetSteps(cost, max_streams);
  // Requests queued before the first estimate have an assumed cost. Give them their own.
  if (!knew_steps && estimates_.knows_steps()) {
    queue_.SetCosts([this](const std::unique_ptr<Job>& job) { return CostsOf(*job); });
  }
}

int64_t PendingJobs::WaitingForClients() const {
  return std::count_if(returned_.begin(), returned_.end(),
                       [](const std::unique_ptr<Job>& job) { return job->paused(); });
}

PendingJobs::Costs PendingJobs::CostsOf(const Job& job) const {
  const StreamTokens tokens = RestOf(job);
  if (estimates_.knows_steps()) return {estimates_.Cost(tokens), estimates_.PrefillCost(tokens)};
  return {kAssumedTokenCost * (tokens.prompt + tokens.generated), kAssumedTokenCost * tokens.prompt};
}

absl::Status PendingJobs::CheckRoomFor(WorkAttributes next, int64_t free_streams) const {
  WorkOrder::Load ahead = queue_.Ahead(next);
  WorkOrder::Load of_client = queue_.LoadOf(next.client);
  if (ahead.waiting + next.position_in_call.count <= free_streams) {
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

absl::Status PendingJobs::CheckTime(const Job& job, int64_t tokens_to_read, absl::Time now) const {
  const auto fast = estimates_.FastPrefill(tokens_to_read, now);
  if (!fast.has_value()) return absl::OkStatus();
  return CheckDeadline(*fast, job.context().deadline, now);
}

void PendingJobs::Charge(Job& job) {
  QueueEntry& entry = job.entry;
  const absl::Duration all = job.steps.worker_time.all + job.steps.overhead;
  queue_.Complete(*entry.attributes_, estimates_.PartOfAll(entry.worker_, TokensOf(job), all - entry.charged_));
  entry.charged_ = all;
  entry.attributes_.reset();
}

}  // namespace longshort::core
