// The model of one worker of a language model's engine: a replica with its cache, and the loop that runs its steps.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/cache/paged_cache.h"
#include "core/generation/request_queue.h"
#include "core/generation/step_loop.h"
#include "core/generation/worker_states.h"
#include "core/schedule/model_worker.h"
#include "core/session/session_store.h"
#include "models/model.h"
#include "models/worker_device.h"

namespace longshort::core {

// When the model is discarded (StepLoop::broken), its jobs return to the queue, for this worker or another, and the
// worker gets a new replica with an empty cache. The replica also ends expired sessions, whether its worker sleeps or
// works.
class LanguageModelReplica final : public ModelRunner {
 public:
  struct Options {
    models::WorkerDevice device = {};
    StepLoop::Options step_loop = {};
  };

  // The arguments must outlive the replica.
  LanguageModelReplica(const models::LanguageModelWeights& weights, RequestQueue& queue, SessionStore& sessions,
                       const Clock& clock, WorkerStates& states, const Options& options)
      : weights_(weights), queue_(queue), sessions_(sessions), clock_(clock), states_(states), options_(options) {}

  // Errors: those of LanguageModelWeights::NewReplica and StepLoop::Create.
  absl::Status Build() override;
  absl::Time RunRound(bool end_now) override;
  bool broken() const override { return loop_->broken(); }
  void FreeModel() override;
  void Rest() override { model_->Rest(); }
  void OnNoModel() override;
  void OnRebuilt(const absl::Status& status) override { states_.observer().OnWorkerRebuilt(status); }
  void EndAbandoned(bool end_now) override;
  absl::Time RunMaintenance() override;

  // Null while there is no model.
  PagedCache* cache() { return loop_ == nullptr ? nullptr : &loop_->cache(); }
  // Errors: INTERNAL if a page is lost or has two owners.
  absl::Status CheckInvariants() const { return loop_ == nullptr ? absl::OkStatus() : loop_->CheckInvariants(); }

 private:
  const models::LanguageModelWeights& weights_;
  RequestQueue& queue_;
  SessionStore& sessions_;
  const Clock& clock_;
  WorkerStates& states_;
  const Options options_;

  std::unique_ptr<models::LanguageModel> model_;
  std::unique_ptr<StepLoop> loop_;  // null while there is no model
};

// Runs the task soon with the cache of a worker; with null if the worker has ended or has no model. All workers must
// drive LanguageModelReplicas.
void PostToCache(ModelWorkers& workers, int worker, std::function<void(PagedCache*)> task);

}  // namespace longshort::core
