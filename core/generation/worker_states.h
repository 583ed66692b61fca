// What the workers of one engine are doing, together, and what waits for them.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/generation/request_queue.h"
#include "core/requests/language_model_engine.h"

namespace longshort::core {

// Thread-safe.
class WorkerStates final {
 public:
  // `observer` hears of the sum after every change; both must outlive this.
  WorkerStates(size_t workers, const RequestQueue& queue, LanguageModelEngineObserver& observer)
      : queue_(queue), observer_(observer), states_(workers) {}

  void Set(size_t worker, const LanguageModelEngineState& state);
  // The queue has changed, no worker has: the observer hears the sum anew.
  void ReportQueued();
  // With what waits now. What caches counted that are gone, because a worker has another model, stays counted.
  LanguageModelEngineState Sum() const;
  // For all that is not a state.
  LanguageModelEngineObserver& observer() const { return observer_; }

 private:
  // With the mutex held.
  LanguageModelEngineState SumOfAll() const;

  const RequestQueue& queue_;
  LanguageModelEngineObserver& observer_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<LanguageModelEngineState> states_;
  CacheCounters of_gone_caches_;
};

}  // namespace longshort::core
