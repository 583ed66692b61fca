// What a worker of a language model's engine drives: a replica of the model with its cache, and the loop of its steps.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/cache/paged_cache.h"
#include "core/generation/request_queue.h"
#include "core/generation/step_loop.h"
#include "core/requests/language_model_engine.h"
#include "core/schedule/failure_policy.h"
#include "models/model.h"
#include "models/worker_device.h"

namespace longshort {

// When the model is given up (StepLoop::broken), what ran goes back to the queue, for this worker or another, and the
// worker gets a new replica with an empty cache, when core/schedule/failure_policy.h says.
//
// Thread: one worker's thread, once it is built.
class LanguageModelReplica final {
 public:
  struct Options {
    WorkerDevice device = {};
    StepLoop::Options step_loop = {};
  };

  // The arguments must outlive the replica, which is yet to be built.
  LanguageModelReplica(const LanguageModel& prototype, RequestQueue& queue, const Clock& clock,
                       LanguageModelEngineObserver& observer, const Options& options)
      : prototype_(prototype), queue_(queue), clock_(clock), observer_(observer), options_(options) {}

  // Gives the worker a model and its cache. Errors: those of LanguageModel::Replicate and StepLoop::Create.
  absl::Status Build();

  // One round of whatever there is: a step, or the end of all that is left if it is to `end_now`. Returns whether there
  // is more to do at once.
  bool RunRound(bool end_now);

  // Whether there is a model, between two that are given up.
  bool has_model() const { return model_ != nullptr; }
  // The model will have nothing to do for a while. REQUIRES: has_model.
  void Rest() { model_->Rest(); }
  // Null while there is no model.
  PagedCache* cache() { return loop_ == nullptr ? nullptr : &loop_->cache(); }
  // Errors: INTERNAL if pages were lost or given out twice.
  absl::Status CheckInvariants() const { return loop_ == nullptr ? absl::OkStatus() : loop_->CheckInvariants(); }

 private:
  // Its model is given up.
  void GiveUp();
  // There will be no model for a while.
  void TellThatThereIsNone();
  // Has lost its model: tries to build another one, and ends what nobody waits for. Returns whether it has one.
  bool Rebuild(bool end_now);

  const LanguageModel& prototype_;
  RequestQueue& queue_;
  const Clock& clock_;
  LanguageModelEngineObserver& observer_;
  const Options options_;

  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<StepLoop> loop_;  // null while there is no model to be had
  ModelReplacement replacement_;
};

}  // namespace longshort
