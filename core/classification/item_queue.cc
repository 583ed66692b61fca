#include "core/classification/item_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/request_context.h"

namespace longshort::core {
namespace {

void Append(ClassificationJobs more, ClassificationJobs& jobs) {
  std::move(more.begin(), more.end(), std::back_inserter(jobs));
}

}  // namespace

std::shared_ptr<ClientBudgets> WaitingByteBudgets(int64_t bytes, std::shared_ptr<Budget> parent) {
  return std::make_shared<ClientBudgets>(
      std::make_shared<Budget>(bytes, Budget::Names{.holders = "the waiting items of all classifiers", .unit = "bytes"},
                               std::move(parent)),
      Budget::Names{.holders = "this client's waiting items", .unit = "bytes"});
}

absl::Status ItemQueue::Check(const Options& options) {
  LS_RETURN_IF_ERROR(CheckLimits(options.limits));
  if (options.waiting_bytes == nullptr || options.waiting_bytes->all()->capacity() < 1) {
    return absl::InvalidArgumentError("the budget of waiting_bytes must have at least 1 byte");
  }
  return BatchFormer::Check(options.batches);
}

absl::Status ItemQueue::Admit(std::unique_ptr<ClassificationJob> job, absl::Time now) {
  {
    const MutexLock lock(mutex_);
    if (is_closed()) return ServerIsStopping();
    LS_RETURN_IF_ERROR(CheckAndAdd(std::move(job), now));
    ReportState();
    CountChange();
  }
  WakeWorkers();
  return absl::OkStatus();
}

absl::Status ItemQueue::CheckAndAdd(std::unique_ptr<ClassificationJob> job, absl::Time now) {
  const RequestContext& context = job->context();
  job->attributes = {
      .priority = context.priority,
      .client = context.client,
      .due = std::min(context.deadline, job->submitted() + options_.patience) + job->work_until_prepared(),
      .position_in_call = context.position_in_call};
  if (job->prepared()) {
    job->attributes.cost = batches_.CostOf(*job);
  } else {
    job->attributes.cost = RunCost(1);
  }
  const WorkOrder::Load all = Waiting(unprepared_.load(), batches_.load());
  const WorkOrder::Load of_client = Waiting(unprepared_.LoadOf(context.client), batches_.LoadOf(context.client));
  const bool idle = all.waiting == 0 && batches_.running() < worker_count_;
  if (job->prepared() && !idle) LS_RETURN_IF_ERROR(batches_.CheckDeadlineCanBeMet(*job, now));
  WorkOrder::Load unprepared_ahead = unprepared_.Ahead(job->attributes);
  unprepared_ahead.running = unprepared_.load().running;
  const WorkOrder::Load ahead = Waiting(unprepared_ahead, batches_.Ahead(job->attributes));
  LS_RETURN_IF_ERROR(CheckRoom(options_.limits, ahead, of_client, job->attributes,
                               {.retry_after = seconds_per_item_.empty() ? kMinRetryDelayOfUnknown : kMinRetryDelay,
                                .queue_depth = all.waiting}));
  LS_RETURN_IF_ERROR(CheckBytes(*job, all));
  Count(*job);
  if (job->prepared()) {
    batches_.Add(std::move(job));
  } else {
    WorkAttributes attributes = job->attributes;
    attributes.cost = job->preparation_work();
    unprepared_.Add(std::move(attributes), std::move(job));
  }
  return absl::OkStatus();
}

absl::Duration ItemQueue::RunCost(int64_t items) const {
  return seconds_per_item_.empty() ? absl::ZeroDuration() : items * absl::Seconds(seconds_per_item_.Median());
}

WorkOrder::Load ItemQueue::Waiting(const WorkOrder::Load& unprepared, const WorkOrder::Load& prepared) const {
  return {.waiting = unprepared.waiting + unprepared.running + prepared.waiting,
          .waiting_cost = RunCost(unprepared.waiting) + prepared.waiting_cost};
}

absl::Status ItemQueue::CheckBytes(ClassificationJob& job, const WorkOrder::Load& all) {
  job.held = Budget::Share(options_.waiting_bytes->Of(job.context().client));
  const absl::Status status = job.held.Grow(job.bytes());
  return status.ok() ? status : RefuseForNow(all, std::string(status.message()));
}

ClassifierEngineState ItemQueue::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

int64_t ItemQueue::ReservePreparations() {
  const MutexLock lock(mutex_);
  return Reserve();
}

int64_t ItemQueue::Reserve() {
  const int64_t max_ahead = 2 * worker_count_ * options_.batches.max_batch_size;
  const int64_t ahead = reserved_preparations_ + unprepared_.load().running + batches_.size();
  const int64_t more = std::max<int64_t>(0, std::min(unprepared_.size() - reserved_preparations_, max_ahead - ahead));
  reserved_preparations_ += more;
  return more;
}

std::unique_ptr<ClassificationJob> ItemQueue::BeginPreparation() {
  const MutexLock lock(mutex_);
  --reserved_preparations_;
  ++begun_preparations_;
  auto taken = unprepared_.TakeFirst();
  if (!taken.has_value()) return nullptr;
  taken->item->attributes = std::move(taken->attributes);
  return std::move(taken->item);
}

void ItemQueue::AddPrepared(std::unique_ptr<ClassificationJob> job, absl::Duration preparation) {
  const MutexLock lock(mutex_);
  unprepared_.Complete(job->attributes, preparation);
  batches_.Add(std::move(job));
}

void ItemQueue::RemoveUnprepared(ClassificationJob& job, absl::Duration preparation) {
  const MutexLock lock(mutex_);
  unprepared_.Complete(job.attributes, preparation);
  Uncount(job);
  ReportState();
}

int64_t ItemQueue::EndPreparation() {
  const MutexLock lock(mutex_);
  --begun_preparations_;
  Changed();  // with the lock held: without it, the queue may be destroyed
  return Reserve();
}

absl::Time ItemQueue::BatchDueAt(int worker) {
  const MutexLock lock(mutex_);
  const absl::Time due = batches_.DueAt(TakerOf(worker).on_probation);
  return is_closed() && due < absl::InfiniteFuture() ? absl::InfinitePast() : due;
}

bool ItemQueue::HasBatchAhead(int worker) const {
  const MutexLock lock(mutex_);
  return !probation_.IsOnProbation(worker) && batches_.HasFullBatch();
}

BatchFormer::Batch ItemQueue::TakeBatch(absl::Time now, int worker, absl::Time busy_until) {
  const MutexLock lock(mutex_);
  BatchTaker taker = TakerOf(worker);
  taker.busy_until = busy_until;
  BatchFormer::Batch batch = batches_.TakeBatch(now, taker);
  for (const auto& job : batch.jobs) Uncount(*job);
  for (const auto& left : batch.too_late) Uncount(*left.job);
  ReportState();
  return batch;
}

void ItemQueue::Complete(int worker, const ClassificationJobs& batch, absl::Duration run, absl::Time now) {
  const MutexLock lock(mutex_);
  const absl::Duration part_of_all = batches_.Complete(worker, batch, run, /*failed=*/false, now);
  seconds_per_item_.Add(absl::ToDoubleSeconds(part_of_all) / static_cast<double>(batch.size()), now);
  // The waiting items may be of clients that had reached their limit of running items.
  if (batches_.size() > 0 || is_closed()) Changed();
}

ClassificationJobs ItemQueue::CompleteFailed(int worker, ClassificationJobs batch, absl::Duration run, absl::Time now) {
  const MutexLock lock(mutex_);
  batches_.Complete(worker, batch, run, /*failed=*/true, now);
  ClassificationJobs exhausted;
  for (std::unique_ptr<ClassificationJob>& job : batch) {
    job->failures.OnFailure(/*alone=*/batch.size() == 1);
    if (job->failures.exhausted()) {
      exhausted.push_back(std::move(job));
    } else {
      AddAgain(std::move(job));
    }
  }
  ReportState();
  Changed();
  return exhausted;
}

void ItemQueue::Return(int worker, ClassificationJobs batch, absl::Time now) {
  const MutexLock lock(mutex_);
  batches_.Complete(worker, batch, absl::ZeroDuration(), /*failed=*/true, now);
  for (std::unique_ptr<ClassificationJob>& job : batch) AddAgain(std::move(job));
  ReportState();
  Changed();
}

void ItemQueue::AddAgain(std::unique_ptr<ClassificationJob> job) {
  Count(*job);
  batches_.Add(std::move(job));
}

ClassificationJobs ItemQueue::TakeAbandoned(absl::Time now) {
  const auto is_abandoned = [now](const std::unique_ptr<ClassificationJob>& job) {
    return !job->CheckNotAbandoned(now).ok();
  };
  const MutexLock lock(mutex_);
  ClassificationJobs jobs = batches_.TakeAbandoned(now);
  Append(unprepared_.RemoveIf(is_abandoned), jobs);
  for (const auto& job : jobs) Uncount(*job);
  if (!jobs.empty()) ReportState();
  return jobs;
}

ClassificationJobs ItemQueue::TakeAll() {
  const MutexLock lock(mutex_);
  ClassificationJobs jobs = batches_.TakeAll();
  Append(unprepared_.RemoveAll(), jobs);
  for (const auto& job : jobs) Uncount(*job);
  if (!jobs.empty()) ReportState();
  return jobs;
}

int64_t ItemQueue::unprepared() const {
  const MutexLock lock(mutex_);
  return unprepared_.size();
}

int64_t ItemQueue::preparing() const {
  const MutexLock lock(mutex_);
  return unprepared_.load().running;
}

int64_t ItemQueue::prepared() const {
  const MutexLock lock(mutex_);
  return batches_.size();
}

void ItemQueue::Count(ClassificationJob& job) {
  ++state_.waiting_items;
  state_.waiting_bytes += job.bytes();
  job.held.SetAmount(job.bytes());
}

void ItemQueue::Uncount(ClassificationJob& job) {
  --state_.waiting_items;
  state_.waiting_bytes -= job.bytes();
  job.held.SetAmount(0);
}

void ItemQueue::ReportState() {
  if (observer_ != nullptr) observer_->OnState(state_);
}

void ItemPreparer::Submit(int64_t tasks) {
  for (; tasks > 0; --tasks) pool_->Submit({.client = owner_}, [this] { return PrepareNext(); });
}

absl::Duration ItemPreparer::PrepareNext() {
  absl::Duration preparation;
  if (std::unique_ptr<ClassificationJob> job = items_.BeginPreparation(); job != nullptr) {
    const absl::Time begin = clock_.Now();
    const absl::Status status = items_.ends_now() ? ServerIsStopping() : Prepare(*job);
    preparation = clock_.Now() - begin;
    if (status.ok()) {
      items_.AddPrepared(std::move(job), preparation);
    } else {
      items_.RemoveUnprepared(*job, preparation);
      FailItem(*job, status, observer_);
    }
  }
  // If no preparation was reserved, the queue may be over and this object destroyed.
  if (const int64_t more = items_.EndPreparation(); more > 0) Submit(more);
  return preparation;
}

absl::Status ItemPreparer::Prepare(ClassificationJob& job) {
  const absl::Time begin = clock_.Now();
  LS_RETURN_IF_ERROR(job.CheckNotAbandoned(begin));
  absl::Status status = job.Prepare();
  const absl::Time end = clock_.Now();
  job.SetPrepared(end);
  observer_.OnPrepared(end - begin);
  LS_RETURN_IF_ERROR(status);
  // A worker that took its time before now would run an item that has expired meanwhile.
  return job.CheckNotAbandoned(end);
}

}  // namespace longshort::core
