// The engine of a classifier: a pool of threads prepares items, a queue holds them, and workers run them in batches.
//
//   Classify -> ItemQueue -> ModelWorker (each a thread) -> ClassifierReplica (the model, its batches) -> listener
//                 ^   |
//              ItemPreparer (the pool's threads)
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "core/classification/batch_former.h"
#include "core/classification/item_queue.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/fair_pool.h"
#include "core/schedule/model_worker.h"
#include "models/classifier.h"
#include "models/worker_device.h"

namespace longshort::core {

// The model of one worker, which runs batches.
//
// A device that runs batches while the worker does something else (models::Classifier::BeginBatch) gets the next batch
// before the last one ends, if the next one is full. Otherwise it would be smaller than one that is taken later.
//
// When a batch fails, its items are tried again, each alone, by any free worker. An item that fails three times ends
// with INTERNAL (core/schedule/failure_policy.h). If the model is discarded, the items of the next batch wait again. No
// lock is held while the model runs or a listener is called.
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
  struct BegunBatch {
    ClassificationJobs jobs;
    absl::Time begun;
    absl::Time predicted_end;
  };

  // Whether a batch may begin now, beside those that have.
  bool MayBegin() const;
  // Takes a batch, and begins it. Returns whether it did.
  bool BeginBatch();
  // Waits for the first batch that has begun, and completes it.
  void FinishBatch();
  void EndBatch(BegunBatch batch, const absl::StatusOr<models::ClassifierResult>& result);
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
  std::deque<BegunBatch> begun_;                    // at most batches_at_once()
  absl::Time last_end_ = absl::InfinitePast();      // of a batch
  ModelHealth health_;
};

// A free worker takes a batch at once, or, with BatchFormer::Options::max_queue_delay, when it is due. Abandoned items
// and items that cannot meet their deadlines end before each batch; abandoned ones also before each preparation.
//
// The destructor ends the remaining items with UNAVAILABLE, within the batches that have begun and one preparation.
class DynamicBatchingEngine final : public ClassifierEngine {
 public:
  struct Options {
    ItemQueue::Options items = {};
    // At least one.
    std::vector<models::WorkerDevice> workers = models::CpuWorkers(1);
  };

  // `observer` may be null. `clock` must outlive the engine.
  // Errors: INVALID_ARGUMENT for options out of range, RESOURCE_EXHAUSTED if no thread can be created, those of
  // ClassifierWeights::NewReplica.
  static absl::StatusOr<std::unique_ptr<DynamicBatchingEngine>> Create(
      models::ClassifierWeights weights, std::shared_ptr<FairPool> pool,
      std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options);

  absl::Status Classify(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener) override;
  ClassifierEngineState state() const override { return items_.state(); }
  void Drain(absl::Time deadline) override { workers_.Drain(deadline); }

 private:
  DynamicBatchingEngine(models::ClassifierWeights weights, std::shared_ptr<FairPool> pool,
                        std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options);

  const models::ClassifierWeights weights_;
  const std::unique_ptr<ClassifierEngineObserver> observer_;
  const Clock& clock_;
  ItemQueue items_;
  ItemPreparer preparer_;
  ModelWorkers workers_;  // last: the workers use the other members
};

}  // namespace longshort::core
