// A worker of a simulated engine: it stays in each step of its model until the simulated time has come to the step's
// end, and meanwhile clients and other workers do what they do.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/cache/paged_cache.h"
#include "core/generation/language_model_replica.h"
#include "core/generation/request_queue.h"
#include "core/generation/worker_states.h"
#include "core/schedule/model_worker.h"
#include "core/session/session_store.h"
#include "models/model.h"
#include "tests/core/fakes/coroutine.h"

namespace longshort::core {

// Does what ModelWorker's thread does, with the real queue, worker, replica, loop and cache.
class SimulatedWorker final {
 public:
  // The arguments must outlive the worker. Its model's steps must call StayInStep.
  SimulatedWorker(const models::LanguageModelWeights& weights, RequestQueue& queue, SessionStore& sessions,
                  const Clock& clock, WorkerStates& states, const StepLoop::Options& options);
  // When it continues if nothing changes: its step ends, or it checks again.
  absl::Time next() const { return next_; }
  // Whether it has something to do by now.
  bool due() const { return next_ <= clock_.Now() || (!in_step_ && queue_.changes() != changes_seen_); }
  // Goes on, until it is in its next step or has nothing more to do now. REQUIRES: not ended.
  void Run() { coroutine_.Resume(); }
  // Of its model, which is in a step of Run.
  void StayInStep(absl::Duration step);
  bool in_step() const { return in_step_; }
  // Whether it sleeps although the queue has got work for it since it last checked.
  bool SleepsBesideWork() {
    if (in_step_ || ended() || replica_->cache() == nullptr) return false;
    return queue_.HasJobFor({.worker = number_, .running = 0, .now = looked_});
  }
  // The queue is over; so it must be when this is destroyed.
  bool ended() const { return coroutine_.ended(); }

  // Frees these pages before its next round. The queue must be woken.
  void RemoveParked(ParkedId parked) { to_remove_.push_back(parked); }

  // Of its model's cache, which it has unless no replica is to be had.
  CacheState cache() { return replica_->cache()->state(); }
  // Errors: INTERNAL if pages were lost.
  absl::Status CheckInvariants() const { return replica_->CheckInvariants(); }

 private:
  void Work();

  RequestQueue& queue_;
  const Clock& clock_;
  const int number_;
  LanguageModelReplica* const replica_;  // worker_'s
  ModelWorker worker_;
  std::vector<ParkedId> to_remove_;
  bool in_step_ = false;
  int64_t changes_seen_ = -1;
  absl::Time looked_;
  absl::Time next_ = absl::InfinitePast();
  Coroutine coroutine_;
};

}  // namespace longshort::core
