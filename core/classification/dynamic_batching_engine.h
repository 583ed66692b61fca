// The engine of a classifier: a pool of threads prepares items, a queue holds them, and workers run them in batches.
//
//   Classify -> ItemQueue -> ModelWorker (each a thread) -> ClassifierReplica (the model, its batches) -> listener
//                 ^   |
//              ItemPreparer (the pool's threads)
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "core/classification/item_queue.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/fair_pool.h"
#include "core/schedule/model_worker.h"
#include "models/classifier.h"
#include "models/worker_device.h"

namespace longshort::core {

// A free worker takes a batch at once, or, with BatchFormer::Options::max_queue_delay, when it is due. Abandoned items
// and items that cannot meet their deadlines end before each batch; abandoned ones also before each preparation.
//
// The destructor ends the remaining items with UNAVAILABLE, within one batch and one preparation.
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
