// Runs a classifier's batches and tells the listeners of their items.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/engine/classification_engine.h"
#include "core/engine/classification_job.h"
#include "core/engine/clock.h"
#include "models/classifier.h"

namespace longshort {

// Thread: one worker's thread calls Run; any thread calls Fail. No lock is held meanwhile.
class BatchRunner {
 public:
  // All must outlive this.
  BatchRunner(Classifier& classifier, ClassificationObserver& observer, const Clock& clock)
      : classifier_(classifier), observer_(observer), clock_(clock) {}

  // Every job gets its scores, or its error: one whose logits are not finite alone, all if the model fails. Returns how
  // long the model took. Errors: INTERNAL if the model failed, or threw.
  absl::StatusOr<absl::Duration> Run(const ClassificationJobs& batch);

  // Ends an item that does not run.
  void Fail(ClassificationJob& job, const absl::Status& status);

 private:
  absl::StatusOr<ClassifierResult> Classify(const ClassificationJobs& batch);
  void Finish(ClassificationJob& job, absl::Span<const float> logits, absl::Time begin, absl::Time end);

  Classifier& classifier_;
  ClassificationObserver& observer_;
  const Clock& clock_;
};

}  // namespace longshort
