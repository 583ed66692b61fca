#include "core/classification/classifier_replica.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/classification/batch_former.h"
#include "core/requests/request_context.h"

namespace longshort::core {

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
