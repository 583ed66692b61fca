// The engine of a language model: a queue, and workers that take requests from it.
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

// The number of tokens that the requests of one or several engines may hold, from submission to end. `parent`: a budget
// of bytes; null for none.
inline std::shared_ptr<ClientBudgets> PromptTokenBudgets(int64_t tokens, std::shared_ptr<Budget> parent = nullptr) {
  return std::make_shared<ClientBudgets>(
      std::make_shared<Budget>(tokens, Budget::Names{.holders = "the requests in flight", .unit = "tokens"},
                               std::move(parent), TokenStream::kTokenBytes),
      Budget::Names{.holders = "this client's requests in flight", .unit = "tokens"});
}

// A session's next request goes to the worker that has its rows, unless that worker is full. The destructor ends the
// remaining requests with UNAVAILABLE, within one step.
class ContinuousBatchingEngine final : public LanguageModelEngine {
 public:
  struct Options {
    // The order of requests that wait for a stream, and their limits.
    RequestQueue::Options queue = {};
    // For the tokens of all waiting and running requests, and their options. A prompt beyond it is refused; generated
    // tokens are not. 2^26 take 256 MiB. Engines may share it.
    std::shared_ptr<ClientBudgets> token_budgets = PromptTokenBudgets(int64_t{1} << 26);
    // For all workers together. Each worker gets an equal part of max_streams and cache_bytes. If the workers' devices
    // set memory_bytes, these are the sizes of their caches, and the streams are divided in proportion.
    StepLoop::Options step_loop = {};
    // At least one. Either all set memory_bytes, or none does.
    std::vector<models::WorkerDevice> workers = models::CpuWorkers(1);
    // A session store that other engines of the same weights share; null for a store of the engine's own, with the
    // options `sessions`.
    std::shared_ptr<SessionStore> session_store = {};
    SessionStore::Options sessions = {};
  };

  // `tokenizer` may be null (Vocabulary::Make), and so may `observer`. `clock` must outlive the engine.
  // Errors: INVALID_ARGUMENT for options out of range or a tokenizer of another model, RESOURCE_EXHAUSTED if there is
  // no memory for the cache or no thread can be created, and as StepLoop::Create.
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
    models::CachePages smallest;                       // any worker may have to take any request
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
  const std::shared_ptr<ClientBudgets> token_budgets_;
  const std::shared_ptr<SessionStore> sessions_;  // before all members that may hold jobs
  RequestQueue queue_;
  WorkerStates states_;
  ModelWorkers workers_;
  const std::shared_ptr<WorkerPages> pages_;
  SessionMover session_mover_;
};

}  // namespace longshort::core
