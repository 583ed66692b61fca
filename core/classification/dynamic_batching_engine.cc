#include "core/classification/dynamic_batching_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/classification/batch_former.h"
#include "core/requests/request_context.h"

namespace longshort::core {

absl::StatusOr<std::unique_ptr<DynamicBatchingEngine>> DynamicBatchingEngine::Create(
    models::ClassifierWeights weights, std::shared_ptr<FairPool> pool,
    std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options) {
  LS_RETURN_IF_ERROR(ItemQueue::Check(options.items));
  if (options.workers.empty()) return absl::InvalidArgumentError("workers is 0, must be at least 1");
  if (observer == nullptr) observer = std::make_unique<ClassifierEngineObserver>();
  std::unique_ptr<DynamicBatchingEngine> engine(
      new DynamicBatchingEngine(std::move(weights), std::move(pool), std::move(observer), clock, options));
  for (const models::WorkerDevice& device : options.workers) {
    const auto number = static_cast<int>(engine->workers_.size());
    LS_RETURN_IF_ERROR(engine->workers_.Add(std::make_unique<ClassifierReplica>(
        engine->weights_, number, device, engine->items_, engine->preparer_, *engine->observer_, clock)));
  }
  return engine;
}

DynamicBatchingEngine::DynamicBatchingEngine(models::ClassifierWeights weights, std::shared_ptr<FairPool> pool,
                                             std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock,
                                             const Options& options)
    : weights_(std::move(weights)),
      observer_(std::move(observer)),
      clock_(clock),
      items_(options.items, options.workers, observer_.get()),
      preparer_(std::move(pool), items_, *observer_, clock),
      workers_(items_, clock) {}

absl::Status DynamicBatchingEngine::Classify(ClassificationRequest request,
                                             std::shared_ptr<ClassificationListener> listener) {
  const absl::Time now = clock_.Now();
  auto job = std::make_unique<ClassificationJob>(std::move(request), std::move(listener), now);
  LS_RETURN_IF_ERROR(items_.Admit(std::move(job), now));
  preparer_.PrepareAhead();
  return absl::OkStatus();
}

absl::Status ClassifierReplica::Build() {
  LS_ASSIGN_OR_RETURN(classifier_, weights_.NewReplica(device_));
  health_ = {};
  return absl::OkStatus();
}

absl::Time ClassifierReplica::RunRound(bool end_now) {
  if (begun_.empty() && !end_now) {
    if (const absl::Time due = items_.BatchDueAt(worker_); due > clock_.Now()) return due;
  }
  EndAbandoned(end_now);
  // An item that was prepared since then runs no longer: the next round ends it.
  while (!end_now && MayBegin() && BeginBatch()) continue;
  if (!begun_.empty()) FinishBatch();
  return begun_.empty() ? items_.BatchDueAt(worker_) : absl::InfinitePast();
}

bool ClassifierReplica::MayBegin() const {
  if (begun_.empty()) return true;
  return static_cast<int64_t>(begun_.size()) < classifier_->batches_at_once() && items_.HasBatchAhead(worker_);
}

bool ClassifierReplica::BeginBatch() {
  const absl::Time now = clock_.Now();
  BatchFormer::Batch taken =
      items_.TakeBatch(now, worker_, begun_.empty() ? absl::InfinitePast() : begun_.back().predicted_end);
  preparer_.PrepareAhead();
  for (const auto& [job, why] : taken.too_late) FailItem(*job, why, observer_);
  taken.too_late.clear();
  if (taken.jobs.empty()) return false;
  BegunBatch batch = {.jobs = std::move(taken.jobs), .begun = clock_.Now(), .predicted_end = taken.predicted_end};
  std::vector<const models::ClassifierItem*> items;
  for (const std::unique_ptr<ClassificationJob>& job : batch.jobs) {
    observer_.OnQueued(job->WaitedAsItem(batch.begun));
    items.push_back(&job->item());
  }
  const absl::Status status = health_.RunModel(
      "the model's batch", [&] { return classifier_->BeginBatch(items, batch.jobs.front()->output()); });
  if (status.ok()) {
    begun_.push_back(std::move(batch));
  } else {
    EndBatch(std::move(batch), status);
  }
  return status.ok();
}

void ClassifierReplica::FinishBatch() {
  BegunBatch batch = std::move(begun_.front());
  begun_.pop_front();
  batch.begun = std::max(batch.begun, last_end_);  // the device had run the batch before
  const int64_t width = classifier_->info().WidthOf(batch.jobs.front()->output());
  const absl::StatusOr<models::ClassifierResult> result =
      health_.RunModel("the model's batch", &models::ClassifierResult::rows,
                       static_cast<int64_t>(batch.jobs.size()) * width, [this] { return classifier_->FinishBatch(); });
  last_end_ = clock_.Now();
  EndBatch(std::move(batch), result);
}

void ClassifierReplica::EndAbandoned(bool end_now) {
  const absl::Time now = clock_.Now();
  const ClassificationJobs ended = end_now ? items_.TakeAll() : items_.TakeAbandoned(now);
  for (const auto& job : ended) FailItem(*job, end_now ? ServerIsStopping() : job->CheckNotAbandoned(now), observer_);
}

void ClassifierReplica::EndBatch(BegunBatch batch, const absl::StatusOr<models::ClassifierResult>& result) {
  const absl::Time begin = batch.begun, end = clock_.Now();
  BatchReport report;
  report.items = static_cast<int64_t>(batch.jobs.size());
  report.run = end - begin;
  for (const std::unique_ptr<ClassificationJob>& job : batch.jobs) report.tokens += TokensOf(job->item());
  if (result.ok()) report.multiply_adds = result->counts.multiply_adds;
  observer_.OnBatch(report);
  if (result.ok()) {
    Finish(batch.jobs, result->rows, begin, end);
    health_.OnSuccess();
    items_.Complete(worker_, batch.jobs, report.run, clock_.Now());
    items_.OnModelPassed(worker_);
    return;
  }
  observer_.OnFailure(result.status());
  health_.OnFailure(items_.IsOnProbation(worker_));
  const ClassificationJobs exhausted = items_.CompleteFailed(worker_, std::move(batch.jobs), report.run, clock_.Now());
  for (const auto& job : exhausted) FailItem(*job, result.status(), observer_);
  if (!broken()) return;
  for (; !begun_.empty(); begun_.pop_front()) items_.Return(worker_, std::move(begun_.front().jobs), clock_.Now());
}

void ClassifierReplica::Finish(const ClassificationJobs& batch, absl::Span<const float> rows, absl::Time begin,
                               absl::Time end) {
  const models::ClassifierOutput output = batch.front()->output();
  const auto width = static_cast<size_t>(classifier_->info().WidthOf(output));
  for (const std::unique_ptr<ClassificationJob>& job : batch) {
    const absl::Span<const float> row = rows.first(width);
    rows.remove_prefix(width);
    if (!std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); })) {
      const char* const what = output == models::ClassifierOutput::kLogits ? "a logit" : "an embedding";
      FailItem(*job, absl::InternalError(absl::StrCat("the model returned ", what, " that is not finite")), observer_);
      continue;
    }
    observer_.OnEnded(absl::OkStatus());
    job->Finish(std::vector<float>(row.begin(), row.end()), begin, end);
  }
}

}  // namespace longshort::core
