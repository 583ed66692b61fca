// Runs a classifier's batches and tells the listeners of their items.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/classification/classification_job.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/failure_policy.h"
#include "models/classifier.h"

namespace longshort {

// Thread: one worker's. No lock is held meanwhile.
class BatchRunner final {
 public:
  // All must outlive this.
  BatchRunner(Classifier& classifier, ClassifierEngineObserver& observer, const Clock& clock)
      : classifier_(classifier), observer_(observer), clock_(clock) {}

  // Every job gets its scores; one whose logits are not finite, an error.
  // Errors: INTERNAL if the model failed, or threw; then no job has been told anything.
  absl::Status Run(const ClassificationJobs& batch);
  // How long the model took at the last one, if it failed, too.
  absl::Duration last_run() const { return last_run_; }

  // Of the model; who runs batches tells it how they ended, but for those in which the model threw.
  ModelHealth& health() { return health_; }

 private:
  absl::StatusOr<ClassifierResult> Classify(const ClassificationJobs& batch);
  void Finish(ClassificationJob& job, absl::Span<const float> logits, absl::Time begin, absl::Time end);

  Classifier& classifier_;
  ClassifierEngineObserver& observer_;
  const Clock& clock_;
  absl::Duration last_run_;
  ModelHealth health_;
};

// Ends an item with an error. Thread-safe.
void FailItem(ClassificationJob& job, const absl::Status& status, ClassifierEngineObserver& observer);

}  // namespace longshort
