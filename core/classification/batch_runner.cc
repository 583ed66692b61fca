#include "core/classification/batch_runner.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/classification/batch_former.h"

namespace longshort {

absl::Status BatchRunner::Run(const ClassificationJobs& batch) {
  const absl::Time begin = clock_.Now();
  BatchReport report;
  report.items = static_cast<int64_t>(batch.size());
  for (const std::unique_ptr<ClassificationJob>& job : batch) {
    observer_.OnQueued(job->WaitedAsItem(begin));
    report.tokens += TokensOf(job->item());
  }
  const absl::StatusOr<ClassifierResult> result = Classify(batch);
  const absl::Time end = clock_.Now();
  last_run_ = report.run = end - begin;
  if (result.ok()) report.multiply_adds = result->counts.multiply_adds;
  observer_.OnBatch(report);
  if (!result.ok()) return result.status();
  const auto classes = static_cast<size_t>(classifier_.info().classes);
  for (size_t i = 0; i < batch.size(); ++i) {
    Finish(*batch[i], result->logits.subspan(i * classes, classes), begin, end);
  }
  return absl::OkStatus();
}

// Errors: INTERNAL, whatever went wrong: the items were checked before.
absl::StatusOr<ClassifierResult> BatchRunner::Classify(const ClassificationJobs& batch) {
  std::vector<const ClassifierItem*> items;
  for (const std::unique_ptr<ClassificationJob>& job : batch) items.push_back(&job->item());
  try {
    absl::StatusOr<ClassifierResult> result = classifier_.Classify(items);
    if (!result.ok()) return absl::InternalError(absl::StrCat("the model's batch failed: ", result.status().message()));
    if (static_cast<int64_t>(result->logits.size()) ==
        static_cast<int64_t>(items.size()) * classifier_.info().classes) {
      return result;
    }
    return absl::InternalError("the model's batch returned logits of another size than was asked for");
  } catch (const std::exception& error) {
    health_.OnThrow();
    return absl::InternalError(absl::StrCat("the model's batch failed: ", error.what()));
  }
}

void BatchRunner::Finish(ClassificationJob& job, absl::Span<const float> logits, absl::Time begin, absl::Time end) {
  if (!std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); })) {
    FailItem(job, absl::InternalError("the model gave a class a logit that is not finite"), observer_);
    return;
  }
  observer_.OnEnded(absl::OkStatus());
  job.Finish(std::vector<float>(logits.begin(), logits.end()), begin, end);
}

void FailItem(ClassificationJob& job, const absl::Status& status, ClassifierEngineObserver& observer) {
  observer.OnEnded(status);
  job.Fail(status);
}

}  // namespace longshort
