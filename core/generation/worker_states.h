// The summed state of one engine's workers and queue.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "core/generation/request_queue.h"
#include "core/requests/language_model_engine.h"

namespace longshort::core {

// Thread-safe.
class WorkerStates final {
 public:
  // `observer` gets the sum after every change; both must outlive this.
  WorkerStates(size_t workers, const RequestQueue& queue, LanguageModelEngineObserver& observer)
      : queue_(queue), observer_(observer), states_(workers) {}

  void Set(size_t worker, const LanguageModelEngineState& state);
  // The queue has changed: reports the sum to the observer.
  void ReportQueued();
  // Includes the current queue. Counters of discarded caches stay included.
  LanguageModelEngineState Sum() const;
  // For all other events.
  LanguageModelEngineObserver& observer() const { return observer_; }

 private:
  LanguageModelEngineState SumOfAll() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RequestQueue& queue_;
  LanguageModelEngineObserver& observer_;
  mutable Mutex mutex_;
  std::vector<LanguageModelEngineState> states_ ABSL_GUARDED_BY(mutex_);
  CacheCounters of_discarded_caches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longshort::core
