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
  const absl::Time now = clock_.Now();
  if (const absl::Time due = items_.BatchDueAt(worker_); due > now && !end_now) return due;
  EndAbandoned(end_now);
  // An item that was prepared since then runs no longer: the next round ends it.
  if (end_now) return items_.BatchDueAt(worker_);
  BatchFormer::Batch batch = items_.TakeBatch(now, worker_);
  preparer_.PrepareAhead();
  for (const auto& [job, why] : batch.too_late) FailItem(*job, why, observer_);
  batch.too_late.clear();
  if (!batch.jobs.empty()) RunBatch(std::move(batch.jobs));
  return items_.BatchDueAt(worker_);
}

void ClassifierReplica::EndAbandoned(bool end_now) {
  const absl::Time now = clock_.Now();
  const ClassificationJobs ended = end_now ? items_.TakeAll() : items_.TakeAbandoned(now);
  for (const auto& job : ended) FailItem(*job, end_now ? ServerIsStopping() : job->CheckNotAbandoned(now), observer_);
}

void ClassifierReplica::RunBatch(ClassificationJobs batch) {
  const absl::Time begin = clock_.Now();
  BatchReport report;
  report.items = static_cast<int64_t>(batch.size());
  std::vector<const models::ClassifierItem*> items;
  for (const std::unique_ptr<ClassificationJob>& job : batch) {
    observer_.OnQueued(job->WaitedAsItem(begin));
    report.tokens += TokensOf(job->item());
    items.push_back(&job->item());
  }
  const models::ClassifierOutput output = batch.front()->output();
  const absl::StatusOr<models::ClassifierResult> result = health_.RunModel(
      "the model's batch", &models::ClassifierResult::rows, report.items * classifier_->info().WidthOf(output),
      [&] { return classifier_->Run(items, output); });
  const absl::Time end = clock_.Now();
  report.run = end - begin;
  if (result.ok()) report.multiply_adds = result->counts.multiply_adds;
  observer_.OnBatch(report);
  if (result.ok()) {
    Finish(batch, result->rows, begin, end);
    health_.OnSuccess();
    items_.Complete(worker_, batch, report.run, clock_.Now());
    items_.OnModelPassed(worker_);
    return;
  }
  observer_.OnFailure(result.status());
  health_.OnFailure(items_.IsOnProbation(worker_));
  const ClassificationJobs exhausted = items_.CompleteFailed(worker_, std::move(batch), report.run, clock_.Now());
  for (const auto& job : exhausted) FailItem(*job, result.status(), observer_);
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
