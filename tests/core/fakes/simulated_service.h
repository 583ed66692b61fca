// A service that is one thread of a test's: an engine of a language model, and those before it that still end what they
// have, all in the time of a fake clock.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/engine/clock.h"
#include "core/engine/engine.h"
#include "core/engine/request_queue.h"
#include "core/engine/step_loop.h"
#include "core/engine/token_budget.h"
#include "core/engine/vocabulary.h"
#include "core/session/session_store.h"
#include "tests/core/fakes/fake_language_model.h"

namespace longshort {

// Does what LanguageModelEngine and LanguageModelWorker do between the real queue, step loop, cache and store of
// sessions, without their threads.
class SimulatedService final {
 public:
  struct Options {
    RequestQueue::Options queue = {};
    StepLoop::Options step_loop = {};
    int64_t most_prompt_tokens = int64_t{1} << 20;
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

  // `model` is what all engines have replicas of; both must outlive this.
  SimulatedService(FakeLanguageModel& model, const Vocabulary& vocabulary, const Clock& clock, const Options& options);
  ~SimulatedService();

  absl::Status Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener);
  absl::Status Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener);
  absl::Status CloseSession(const SessionKey& key) { return sessions_.Close(key); }
  SessionStore& sessions() { return sessions_; }
  absl::Duration sessions_time_to_live() const { return options_.sessions.time_to_live; }

  // A new engine takes what comes from now on. The one before ends what it has, with UNAVAILABLE at `deadline`.
  void Reload(absl::Time deadline);

  // One round of every engine's worker. Returns whether there is more to do at once.
  bool RunRound();
  // Whether any request waits or runs, paused ones too.
  bool busy() const;

  // Of the engine that takes requests.
  CacheState cache() const;
  // Of all engines. Errors: INTERNAL if pages were lost.
  absl::Status CheckInvariants() const;
  // Prompt tokens that requests hold.
  int64_t held_tokens() const { return token_budget_->held(); }
  Counts counts() const;
  // When an engine last ended requests with UNAVAILABLE.
  absl::Time last_forced_end() const { return last_forced_end_; }

 private:
  class Observer;
  struct SimulatedEngine;

  absl::Status Submit(absl::StatusOr<std::unique_ptr<Job>> job);
  bool RunRound(SimulatedEngine& engine);
  // Adds what the engine's cache has counted.
  static void AddCounters(const SimulatedEngine& engine, Counts& counts);

  FakeLanguageModel& model_;
  const Vocabulary& vocabulary_;
  const Clock& clock_;
  const Options options_;
  Counts counts_;  // with the caches that are gone
  absl::Time last_forced_end_ = absl::InfinitePast();
  const std::unique_ptr<Observer> observer_;
  const std::shared_ptr<TokenBudget> token_budget_;
  SessionStore sessions_;
  std::list<SimulatedEngine> engines_;  // the last one takes requests
};

}  // namespace longshort
