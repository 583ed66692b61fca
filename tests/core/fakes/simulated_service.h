// A service that a test's thread drives: an engine of a language model, and those before it that still end what they
// have, all in the time of a fake clock.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/clock.h"
#include "core/generation/request_queue.h"
#include "core/generation/step_loop.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/language_model_jobs.h"
#include "core/session/session_store.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/simulated_worker.h"

namespace longshort::core {

// Does what ContinuousBatchingEngine does with the real queue, store of sessions and all that workers drive.
class SimulatedService final {
 public:
  struct Options {
    int workers = 1;
    RequestQueue::Options queue = {};
    StepLoop::Options step_loop = {};  // of each worker
    int64_t max_prompt_tokens = int64_t{1} << 20;
    SessionStore::Options sessions = {};
  };

  // What has happened so far.
  struct Counts {
    int64_t steps = 0;
    int64_t rows = 0;
    int64_t failed_steps = 0;
    int64_t rebuilt = 0;
    CacheCounters cache;
  };

  // `model` is what all workers have replicas of; its steps must call StayInStep. The arguments must outlive this.
  SimulatedService(FakeLanguageModel& model, const Vocabulary& vocabulary, const Clock& clock, const Options& options);
  ~SimulatedService();

  absl::Status Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener);
  absl::Status Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener);
  absl::Status CloseSession(const SessionKey& key) { return sessions_.Close(key); }
  SessionStore& sessions() { return sessions_; }
  absl::Duration sessions_time_to_live() const { return options_.sessions.time_to_live; }

  // A new engine takes all later calls. The old one finishes its own; those still running at `deadline` end
  // UNAVAILABLE.
  void Reload(absl::Time deadline);

  // Lets every worker go on that has something to do by now. Returns whether one had.
  bool RunRound();
  // When one has something to do again, if nothing changes.
  absl::Time next() const;
  // Whether one does nothing though there is something for it.
  bool HasSleeperBesideWork();
  // A slow reader takes something again: which the workers would see when they look again.
  void Wake();
  // Of the model in a step: it takes so long. Returns at its end.
  void StayInStep(absl::Duration step) { running_->StayInStep(step); }
  // The worker whose model is in the step: 0 is the first.
  int worker_in_step() const { return running_number_; }

  // Whether any request waits or runs, paused ones too.
  bool busy() const;

  // Of the workers of the engine that takes requests, together: pages that are in use and reserved, and what is parked.
  CacheState cache() const;
  // Of all engines. Errors: INTERNAL if pages were lost.
  absl::Status CheckInvariants() const;
  // Prompt tokens that requests hold.
  int64_t held_tokens() const { return token_budgets_->all()->held(); }
  Counts counts() const;
  // Whether an engine ends requests with UNAVAILABLE.
  bool ends_by_force() const;

 private:
  class Observer;
  struct SimulatedEngine;

  absl::Status Submit(absl::StatusOr<std::unique_ptr<Job>> job);
  static void AddCounters(const SimulatedEngine& engine, Counts& counts);

  FakeLanguageModel& model_;
  const Vocabulary& vocabulary_;
  const Clock& clock_;
  const Options options_;
  Counts counts_;  // with the caches of the engines that are gone
  const std::unique_ptr<Observer> observer_;
  const std::shared_ptr<ClientBudgets> token_budgets_;
  SessionStore sessions_;
  std::list<SimulatedEngine> engines_;  // the last one takes requests
  SimulatedWorker* running_ = nullptr;
  int running_number_ = 0;
};

}  // namespace longshort::core
