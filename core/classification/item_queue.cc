#include "core/classification/item_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

// What waits in both lines; what is being prepared waits as well.
WorkOrder::Load Waiting(const WorkOrder::Load& unprepared, const WorkOrder::Load& prepared) {
  return {.waiting = unprepared.waiting + unprepared.running + prepared.waiting,
          .waiting_cost = unprepared.waiting_cost + prepared.waiting_cost};
}

void Append(ClassificationJobs more, ClassificationJobs& jobs) {
  std::move(more.begin(), more.end(), std::back_inserter(jobs));
}

}  // namespace

absl::Status ItemQueue::Check(const Options& options) {
  LS_RETURN_IF_ERROR(CheckLimits(options.limits));
  if (options.max_waiting_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_waiting_bytes is ", options.max_waiting_bytes, ", must be at least 1"));
  }
  return BatchFormer::Check(options.batches);
}

absl::Status ItemQueue::Admit(std::unique_ptr<ClassificationJob> job, absl::Time now) {
  const RequestContext& context = job->context();
  job->ticket = {.priority = context.priority,
                 .client = context.client,
                 .due = std::min(context.deadline, job->submitted() + options_.patience) + job->work_until_prepared(),
                 .part = context.part};
  if (job->prepared()) {
    job->ticket.cost = batches_.CostOf(job->item());
  } else if (!seconds_per_item_.empty()) {
    job->ticket.cost = absl::Seconds(seconds_per_item_.Usual());
  }
  const WorkOrder::Load all = Waiting(unprepared_.load(), batches_.load());
  const WorkOrder::Load of_client = Waiting(unprepared_.LoadOf(context.client), batches_.LoadOf(context.client));
  const bool idle = all.waiting == 0 && batches_.running() < workers_;
  if (job->prepared() && !idle) LS_RETURN_IF_ERROR(batches_.WhyHopeless(*job, now));
  LS_RETURN_IF_ERROR(CheckRoom(options_.limits, all, of_client, job->ticket));
  LS_RETURN_IF_ERROR(CheckBytes(*job, all));
  ++state_.waiting_items;
  state_.waiting_bytes += job->bytes();
  if (job->prepared()) {
    batches_.Add(std::move(job));
  } else {
    Ticket ticket = job->ticket;
    unprepared_.Add(std::move(ticket), std::move(job));
  }
  return absl::OkStatus();
}

absl::Status ItemQueue::CheckBytes(const ClassificationJob& job, const WorkOrder::Load& all) const {
  if (state_.waiting_items == 0 || state_.waiting_bytes + job.bytes() <= options_.max_waiting_bytes) {
    return absl::OkStatus();
  }
  return RefuseForNow(all, absl::StrCat("the items that wait hold ", state_.waiting_bytes, " bytes and this one has ",
                                        job.bytes(), "; together they may hold ", options_.max_waiting_bytes));
}

std::unique_ptr<ClassificationJob> ItemQueue::TakeUnprepared() {
  auto taken = unprepared_.TakeFirst();
  if (!taken.has_value()) return nullptr;
  taken->thing->ticket = std::move(taken->ticket);
  return std::move(taken->thing);
}

void ItemQueue::AddPrepared(std::unique_ptr<ClassificationJob> job, absl::Duration preparation) {
  unprepared_.Settle(job->ticket, preparation);
  batches_.Add(std::move(job));
}

void ItemQueue::DropUnprepared(const ClassificationJob& job, absl::Duration preparation) {
  unprepared_.Settle(job.ticket, preparation);
  Uncount(job);
}

BatchFormer::Batch ItemQueue::TakeBatch(absl::Time now, const BatchTaker& taker) {
  BatchFormer::Batch batch = batches_.TakeBatch(now, taker);
  for (const auto& job : batch.jobs) Uncount(*job);
  for (const auto& left : batch.hopeless) Uncount(*left.job);
  return batch;
}

void ItemQueue::Settle(int worker, const ClassificationJobs& batch, absl::Duration run, bool failed, absl::Time now) {
  const absl::Duration part_of_all = batches_.Settle(worker, batch, run, failed, now);
  if (failed) return;
  const bool is_first = seconds_per_item_.empty();
  seconds_per_item_.Add(absl::ToDoubleSeconds(part_of_all) / static_cast<double>(batch.size()), now);
  // Those that came before counted as nothing; else all of them would wait beside what may.
  if (is_first) unprepared_.SetCosts([this](const auto&) { return absl::Seconds(seconds_per_item_.Usual()); });
}

void ItemQueue::AddAgain(std::unique_ptr<ClassificationJob> job) {
  ++state_.waiting_items;
  state_.waiting_bytes += job->bytes();
  batches_.Add(std::move(job));
}

ClassificationJobs ItemQueue::TakeAbandoned(absl::Time now) {
  ClassificationJobs jobs = batches_.TakeAbandoned(now);
  Append(unprepared_.RemoveIf(
             [now](const std::unique_ptr<ClassificationJob>& job) { return !job->WhyAbandoned(now).ok(); }),
         jobs);
  for (const auto& job : jobs) Uncount(*job);
  return jobs;
}

ClassificationJobs ItemQueue::TakeAll() {
  ClassificationJobs jobs = batches_.TakeAll();
  Append(unprepared_.RemoveAll(), jobs);
  for (const auto& job : jobs) Uncount(*job);
  return jobs;
}

void ItemQueue::Uncount(const ClassificationJob& job) {
  --state_.waiting_items;
  state_.waiting_bytes -= job.bytes();
}

}  // namespace longshort
