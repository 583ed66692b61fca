// An item in the engine of a classifier, from submission through preparation and its batch to its listener.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/failure_policy.h"
#include "core/schedule/work_attributes.h"
#include "models/classifier.h"

namespace longshort::core {

// One thread at a time owns it: the caller's, then a preparation thread, then the engine's.
class ClassificationJob {
 public:
  ClassificationJob(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener,
                    absl::Time submitted);

  const RequestContext& context() const { return context_; }
  absl::Time submitted() const { return submitted_; }
  // ClassificationRequest::bytes: the memory that it holds while it waits.
  int64_t bytes() const { return bytes_; }
  models::ClassifierOutput output() const { return output_; }
  // As ClassificationRequest says.
  absl::Duration preparation_work() const { return preparation_work_; }
  absl::Duration work_until_prepared() const { return work_until_prepared_; }

  // Whether there is an item to run.
  bool prepared() const { return prepared_at_ != absl::InfiniteFuture(); }
  // Makes the item. REQUIRES: not prepared; called once. Errors: PrepareItem's.
  absl::Status Prepare();
  // The item is ready.
  void SetPrepared(absl::Time now) { prepared_at_ = now; }

  // REQUIRES: prepared().
  const models::ClassifierItem& item() const { return item_; }
  absl::Time prepared_at() const { return prepared_at_; }
  absl::Duration WaitedAsItem(absl::Time now) const { return now - prepared_at_; }

  // OK while the client waits for the result. Errors: CANCELLED, DEADLINE_EXCEEDED.
  absl::Status CheckNotAbandoned(absl::Time now) const;

  // Notifies the listener. REQUIRES: Fail or Finish is called, once, last.
  void Fail(const absl::Status& status);
  // The batch ran from `begin` to `end` and returned this row for the item.
  void Finish(std::vector<float> row, absl::Time begin, absl::Time end);

  // Its entry in the order of work.
  WorkAttributes attributes;
  // The failed batches with this item. After the first one, it runs alone.
  WorkFailures failures{WorkFailures::kOfItem};
  // The number of the first batch of another kind that skipped it; 0 if none did.
  int64_t first_skipped_by = 0;

 private:
  const RequestContext context_;
  const models::ClassifierOutput output_;
  const int64_t bytes_;
  const absl::Duration preparation_work_;
  const absl::Duration work_until_prepared_;
  const absl::Time submitted_;
  std::shared_ptr<ClassificationListener> listener_;
  ItemPreparation preparation_;  // null once called, and if the request came with an item
  models::ClassifierItem item_;
  absl::Time prepared_at_ = absl::InfiniteFuture();
};

using ClassificationJobs = std::vector<std::unique_ptr<ClassificationJob>>;

// Ends an item with an error. Thread-safe.
void FailItem(ClassificationJob& job, const absl::Status& status, ClassifierEngineObserver& observer);

}  // namespace longshort::core
