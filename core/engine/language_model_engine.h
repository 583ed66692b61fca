// The engine of a language model: a queue, and one worker thread that drives a StepLoop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/statusor.h"
#include "core/engine/clock.h"
#include "core/engine/engine.h"
#include "core/engine/request_queue.h"
#include "core/engine/step_loop.h"
#include "core/engine/token_budget.h"
#include "core/engine/vocabulary.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort {

// The worker sleeps while there is nothing to do. The destructor ends what is left with UNAVAILABLE, within one step.
class LanguageModelEngine final : public Engine {
 public:
  struct Options {
    // How requests wait for a stream, and how many may.
    RequestQueue::Options queue = {};
    // Prompt tokens that all requests may hold, waiting and running; more are refused. 2^26 take 256 MiB. Engines may
    // share one budget.
    std::shared_ptr<TokenBudget> token_budget = std::make_shared<TokenBudget>(int64_t{1} << 26);
    StepLoop::Options step_loop = {};
    SessionStore::Options sessions = {};
  };

  // `tokenizer` may be null (Vocabulary::Make), and so may `observer`. `clock` must outlive the engine.
  // Errors: INVALID_ARGUMENT for options out of range or a tokenizer that is not the model's, RESOURCE_EXHAUSTED if
  // there is no memory for the cache or no thread to be had, and as StepLoop::Create.
  static absl::StatusOr<std::unique_ptr<LanguageModelEngine>> Create(std::unique_ptr<LanguageModel> model,
                                                                     std::shared_ptr<const Tokenizer> tokenizer,
                                                                     std::unique_ptr<EngineObserver> observer,
                                                                     const Clock& clock, const Options& options);
  ~LanguageModelEngine() override;

  absl::Status Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener) override;
  absl::Status Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener) override;
  absl::Status CloseSession(const SessionKey& key) override;
  EngineState state() const override;
  void Drain(absl::Time deadline) override;

 private:
  LanguageModelEngine(std::unique_ptr<LanguageModel> model, Vocabulary vocabulary,
                      std::unique_ptr<EngineObserver> observer, const Clock& clock, const Options& options);

  absl::Status Submit(std::unique_ptr<Job> job);
  // The worker: runs until the queue is closed and all has ended.
  void Work();

  const std::unique_ptr<LanguageModel> model_;
  const Vocabulary vocabulary_;
  const std::unique_ptr<EngineObserver> observer_;
  const Clock& clock_;
  const std::shared_ptr<TokenBudget> token_budget_;
  SessionStore sessions_;  // before all that may hold jobs
  RequestQueue queue_;
  std::unique_ptr<StepLoop> step_loop_;
  std::atomic<bool> end_now_ = false;  // no more steps: end what is left

  std::mutex mutex_;
  std::condition_variable worker_ended_changed_;
  bool worker_ended_ = false;  // guarded by mutex_
  std::thread worker_;
};

}  // namespace longshort
