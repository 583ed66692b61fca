#include "core/engine/request_queue.h"

#include <algorithm>
#include <utility>

#include "core/schedule/deadline_check.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

StreamTokens TokensOf(const Job& job) {
  return {.prompt = job.prompt_tokens(),
          .generated = std::max<int64_t>(0, job.MostTokens() - job.stream().given_end())};
}

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
                   .due = std::min(context.deadline, now + options_.patience)};
  {
    std::lock_guard lock(mutex_);
    if (closed_) return absl::UnavailableError("the server is stopping and takes no more requests");
    const bool idle = line_.empty() && line_.load().running == 0;
    if (!idle) LS_RETURN_IF_ERROR(CheckTime(*job, now));
    ticket.cost = estimator_.Cost(TokensOf(*job), now);
    LS_RETURN_IF_ERROR(CheckRoom(options_.limits, line_.load(), line_.LoadOf(ticket.client), ticket));
    line_.Add(std::move(ticket), std::move(job));
  }
  changed_.notify_one();
  return absl::OkStatus();
}

std::unique_ptr<Job> RequestQueue::TakeFirst() {
  std::lock_guard lock(mutex_);
  auto taken = line_.TakeFirst();
  if (!taken.has_value()) return nullptr;
  taken->thing->number = taken_++;
  taken->thing->charge = std::move(taken->ticket);
  return std::move(taken->thing);
}

absl::Status RequestQueue::WhyHopeless(const Job& job, absl::Time now) const {
  std::lock_guard lock(mutex_);
  const bool nothing_else = line_.empty() && line_.load().running <= 1;  // itself
  return nothing_else ? absl::OkStatus() : CheckTime(job, now);
}

void RequestQueue::Settle(Job& job, absl::Time now) {
  if (!job.charge.has_value()) return;
  std::lock_guard lock(mutex_);
  line_.Settle(*job.charge, job.worker_time.all);
  job.charge.reset();
  const bool prefilled = job.times.prefilled != absl::InfiniteFuture();
  if (prefilled && job.worker_time.all > absl::ZeroDuration()) estimator_.Learn(TokensOf(job), job.worker_time, now);
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAbandoned(absl::Time now) {
  std::lock_guard lock(mutex_);
  return line_.RemoveIf([now](const std::unique_ptr<Job>& job) { return !job->WhyAbandoned(now).ok(); });
}

std::vector<std::unique_ptr<Job>> RequestQueue::TakeAll() {
  std::lock_guard lock(mutex_);
  return line_.RemoveAll();
}

void RequestQueue::SetSteps(const StepCost& cost, int64_t max_streams) {
  std::lock_guard lock(mutex_);
  estimator_.SetSteps(cost, max_streams);
}

int64_t RequestQueue::size() const {
  std::lock_guard lock(mutex_);
  return line_.size();
}

WorkOrder::Load RequestQueue::load() const {
  std::lock_guard lock(mutex_);
  return line_.load();
}

void RequestQueue::Close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool RequestQueue::WaitForJob() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !line_.empty(); });
  return !line_.empty();
}

absl::Status RequestQueue::CheckTime(const Job& job, absl::Time now) const {
  const auto fast = estimator_.FastPrefill(job.prompt_tokens(), now);
  if (!fast.has_value()) return absl::OkStatus();
  return CheckDeadline(*fast, job.context().deadline, now);
}

}  // namespace longshort
