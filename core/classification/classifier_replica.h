// The model of one worker of a classifier's engine, which runs batches.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "core/classification/classification_job.h"
#include "core/classification/item_queue.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/model_worker.h"
#include "models/classifier.h"
#include "models/worker_device.h"

namespace longshort::core {

// When a batch fails, its items are tried again, each alone, by any free worker. An item that fails three times ends
// with INTERNAL (core/schedule/failure_policy.h). No lock is held while the model runs or a listener is called.
class ClassifierReplica final : public ModelRunner {
 public:
  // The arguments must outlive the replica. `worker`: its number in the queue.
  ClassifierReplica(const models::ClassifierWeights& weights, int worker, const models::WorkerDevice& device,
                    ItemQueue& items, ItemPreparer& preparer, ClassifierEngineObserver& observer, const Clock& clock)
      : weights_(weights),
        worker_(worker),
        device_(device),
        items_(items),
        preparer_(preparer),
        observer_(observer),
        clock_(clock) {}

  // Errors: those of ClassifierWeights::NewReplica.
  absl::Status Build() override;
  absl::Time RunRound(bool end_now) override;
  bool broken() const override { return health_.broken(); }
  void FreeModel() override { classifier_.reset(); }
  void Rest() override { classifier_->Rest(); }
  void OnRebuilt(const absl::Status& status) override { observer_.OnWorkerRebuilt(status); }
  void EndAbandoned(bool end_now) override;

 private:
  // Runs a taken batch, and completes it.
  void RunBatch(ClassificationJobs batch);
  // Passes each job its row of `rows`, or an error if the row is not finite.
  void Finish(const ClassificationJobs& batch, absl::Span<const float> rows, absl::Time begin, absl::Time end);

  const models::ClassifierWeights& weights_;
  const int worker_;
  const models::WorkerDevice device_;
  ItemQueue& items_;
  ItemPreparer& preparer_;
  ClassifierEngineObserver& observer_;
  const Clock& clock_;

  std::unique_ptr<models::Classifier> classifier_;  // null while there is no model
  ModelHealth health_;
};

}  // namespace longshort::core
