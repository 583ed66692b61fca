// The engine of a language model: a queue, and workers that take from it.
//
//   Generate, Score -> RequestQueue -> ModelWorker (each a thread) -> LanguageModelReplica (the model, its cache, its
//   steps)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/budget.h"
#include "base/clock.h"
#include "core/generation/language_model_replica.h"
#include "core/generation/request_queue.h"
#include "core/generation/session_mover.h"
#include "core/generation/step_loop.h"
#include "core/generation/worker_states.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/language_model_jobs.h"
#include "core/schedule/model_worker.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"
#include "models/worker_device.h"

namespace longshort::core {

// How many prompt tokens the requests of one or several engines may hold, from their submission to their end.
inline std::shared_ptr<Budget> PromptTokenBudget(int64_t tokens) {
  return std::make_shared<Budget>(tokens, Budget::Names{.holders = "the requests in flight", .unit = "prompt tokens"});
}

// A session's next request goes to the worker that has its rows, unless that one is full. The destructor ends what is
// left with UNAVAILABLE, within one step.
class ContinuousBatchingEngine final : public LanguageModelEngine {
 public:
  struct Options {
    // How requests wait for a stream, and how many may.
    RequestQueue::Options queue = {};
    // Prompt tokens that all requests may hold, waiting and running; more are refused. 2^26 take 256 MiB. Engines may
    // share one budget.
    std::shared_ptr<Budget> token_budget = PromptTokenBudget(int64_t{1} << 26);
    // Of all workers together. Each gets its part of max_streams and cache_bytes: an equal one, or, where the workers'
    // devices say their memory_bytes, these for its cache and as large a part of the streams.
    StepLoop::Options step_loop = {};
    // At least one. Either all say their memory_bytes, or none.
    std::vector<models::WorkerDevice> workers = models::CpuWorkers(1);
    // Where sessions are kept: a store that other engines of the same weights share, or null for one of its own, which
    // is as `sessions` say.
    std::shared_ptr<SessionStore> session_store = {};
    SessionStore::Options sessions = {};
  };

  // `tokenizer` may be null (Vocabulary::Make), and so may `observer`. `clock` must outlive the engine.
  // Errors: INVALID_ARGUMENT for options out of range or a tokenizer that is not the model's, RESOURCE_EXHAUSTED if
  // there is no memory for the cache or no thread to be had, and as StepLoop::Create.
  static absl::StatusOr<std::unique_ptr<ContinuousBatchingEngine>> Create(
      models::LanguageModelWeights weights, std::shared_ptr<const models::Tokenizer> tokenizer,
      std::unique_ptr<LanguageModelEngineObserver> observer, const Clock& clock, const Options& options);
  ~ContinuousBatchingEngine() override;

  absl::Status Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener) override;
  absl::Status Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener) override;
  SessionStore& sessions() override { return *sessions_; }
  void ExportSession(const SessionKey& key, std::function<void(absl::StatusOr<SessionArchive>)> done) override;
  void ImportSession(const SessionKey& key, SessionArchive archive, std::function<void(absl::Status)> done) override;
  SessionSize LargestSession() const override;
  LanguageModelEngineState state() const override;
  void Drain(absl::Time deadline) override { workers_.Drain(deadline); }

 private:
  // The caches of the workers on one device.
  struct DeviceCaches {
    const models::LanguageModelInfo* model = nullptr;  // on that device
    models::CachePages smallest;                       // any of them may have to take any request
  };

  // Errors: those of StepLoop::CacheFor.
  static absl::StatusOr<std::vector<DeviceCaches>> CachesOf(const models::LanguageModelWeights& weights,
                                                            absl::Span<const LanguageModelReplica::Options> workers);

  ContinuousBatchingEngine(models::LanguageModelWeights weights, std::vector<DeviceCaches> caches,
                           Vocabulary vocabulary, std::unique_ptr<LanguageModelEngineObserver> observer,
                           const Clock& clock, const Options& options);

  absl::Status Submit(std::unique_ptr<Job> job);

  const models::LanguageModelWeights weights_;
  const std::vector<DeviceCaches> caches_;
  const Vocabulary vocabulary_;
  const std::unique_ptr<LanguageModelEngineObserver> observer_;
  const Clock& clock_;
  const std::shared_ptr<Budget> token_budget_;
  const std::shared_ptr<SessionStore> sessions_;  // before all that may hold jobs
  RequestQueue queue_;
  WorkerStates states_;
  ModelWorkers workers_;
  const std::shared_ptr<WorkerPages> pages_;
  SessionMover session_mover_;
};

}  // namespace longshort::core
