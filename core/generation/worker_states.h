// What the workers of one engine are doing, together, and what waits for them.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/generation/request_queue.h"
#include "core/requests/language_model_engine.h"

namespace longshort {

// Thread-safe.
class WorkerStates final {
 public:
  // `observer` hears of the sum after every change; both must outlive this.
  WorkerStates(size_t workers, const RequestQueue& queue, LanguageModelEngineObserver& observer)
      : queue_(queue), observer_(observer), states_(workers) {}

  void Set(size_t worker, const LanguageModelEngineState& state);
  // The queue has changed, no worker has: the observer hears the sum anew.
  void TellWhatWaits();
  // With what waits now. What caches counted that are gone, because a worker has another model, stays counted.
  LanguageModelEngineState Sum() const;

 private:
  // With the mutex held.
  LanguageModelEngineState SumOfAll() const;

  const RequestQueue& queue_;
  LanguageModelEngineObserver& observer_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<LanguageModelEngineState> states_;
  CacheCounters of_gone_caches_;
};

// Hears one worker: its state goes to the sum, all else straight to the observer.
class WorkerObserver final : public LanguageModelEngineObserver {
 public:
  WorkerObserver(size_t worker, WorkerStates& states, LanguageModelEngineObserver& observer)
      : worker_(worker), states_(states), observer_(observer) {}

  void OnQueued(absl::Duration waited) override { observer_.OnQueued(waited); }
  void OnPrefilled(absl::Duration prefill, int64_t prompt_tokens) override {
    observer_.OnPrefilled(prefill, prompt_tokens);
  }
  void OnStep(absl::Duration step, int64_t rows) override { observer_.OnStep(step, rows); }
  void OnFirstToken(absl::Duration since_submission) override { observer_.OnFirstToken(since_submission); }
  void OnNextToken(absl::Duration since_previous) override { observer_.OnNextToken(since_previous); }
  void OnFailure(const absl::Status& failure) override { observer_.OnFailure(failure); }
  void OnWorkerRebuilt(const absl::Status& status) override { observer_.OnWorkerRebuilt(status); }
  void OnState(const LanguageModelEngineState& state) override { states_.Set(worker_, state); }

 private:
  const size_t worker_;
  WorkerStates& states_;
  LanguageModelEngineObserver& observer_;
};

}  // namespace longshort
