#include "core/classification/dynamic_batching_engine.h"

#include <utility>

#include "base/status_macros.h"
#include "core/classification/classification_job.h"
#include "core/classification/classifier_replica.h"

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

}  // namespace longshort::core
