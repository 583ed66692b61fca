// The engine of a classifier: items are prepared by a pool of threads, wait, and run in batches on the workers.
//
//   Classify -> ItemQueue -> ModelWorker (each a thread) -> ClassifierReplica (the model, its batches) -> listener
//                 ^   |
//              ItemPreparer (the pool's threads)
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "core/classification/item_preparer.h"
#include "core/classification/item_queue.h"
#include "core/classification/preparation_pool.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/model_worker.h"
#include "models/classifier.h"
#include "models/worker_device.h"

namespace longshort::core {

// A worker takes what is there as soon as it is free, or, with BatchFormer::Options::max_queue_delay, as soon as it is
// due. What nobody waits for any more, and what cannot be done in time, is ended before each batch; the former before
// each preparation, too.
//
// The destructor ends what is left with UNAVAILABLE, within one batch and one preparation.
class DynamicBatchingEngine final : public ClassifierEngine {
 public:
  struct Options {
    ItemQueue::Options items = {};
    // At least one.
    std::vector<models::WorkerDevice> workers = models::CpuWorkers(1);
  };

  // `observer` may be null. `clock` must outlive the engine.
  // Errors: INVALID_ARGUMENT for options out of range, RESOURCE_EXHAUSTED if no thread is to be had, those of
  // ClassifierWeights::NewReplica.
  static absl::StatusOr<std::unique_ptr<DynamicBatchingEngine>> Create(
      models::ClassifierWeights weights, std::shared_ptr<PreparationPool> pool,
      std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options);

  absl::Status Classify(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener) override;
  ClassifierEngineState state() const override { return items_.state(); }
  void Drain(absl::Time deadline) override { workers_.Drain(deadline); }

 private:
  DynamicBatchingEngine(models::ClassifierWeights weights, std::shared_ptr<PreparationPool> pool,
                        std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options);

  const models::ClassifierWeights weights_;
  const std::unique_ptr<ClassifierEngineObserver> observer_;
  const Clock& clock_;
  ItemQueue items_;
  ItemPreparer preparer_;
  ModelWorkers workers_;  // last: it ends what the others are used for
};

}  // namespace longshort::core
