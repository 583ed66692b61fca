#include "core/engine/language_model_engine.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/make_job.h"
#include "models/status_macros.h"

namespace longshort {
namespace {

// Prompts that fill the budget take seconds to be read, and their tokens are held until their requests end.
constexpr absl::Duration kLeastTimeForPrompts = absl::Seconds(1);

class DeafObserver final : public EngineObserver {
 public:
  void OnQueued(absl::Duration) override {}
  void OnPrefilled(absl::Duration, int64_t) override {}
  void OnStep(absl::Duration, int64_t) override {}
  void OnFirstToken(absl::Duration) override {}
  void OnNextToken(absl::Duration) override {}
  void OnFailure(const absl::Status&) override {}
  void OnState(const EngineState&) override {}
};

}  // namespace

absl::StatusOr<std::unique_ptr<LanguageModelEngine>> LanguageModelEngine::Create(
    std::unique_ptr<LanguageModel> model, std::shared_ptr<const Tokenizer> tokenizer,
    std::unique_ptr<EngineObserver> observer, const Clock& clock, const Options& options) {
  LS_RETURN_IF_ERROR(RequestQueue::Check(options.queue));
  LS_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Make(model->info().vocabulary_size, std::move(tokenizer)));
  if (observer == nullptr) observer = std::make_unique<DeafObserver>();
  std::unique_ptr<LanguageModelEngine> engine(
      new LanguageModelEngine(std::move(model), std::move(vocabulary), std::move(observer), clock, options));
  LS_ASSIGN_OR_RETURN(engine->step_loop_,
                      StepLoop::Create(*engine->model_, engine->queue_, clock, *engine->observer_, options.step_loop));
  try {
    engine->worker_ = std::thread(&LanguageModelEngine::Work, engine.get());
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start the engine's thread: ", error.what()));
  }
  return engine;
}

LanguageModelEngine::LanguageModelEngine(std::unique_ptr<LanguageModel> model, Vocabulary vocabulary,
                                         std::unique_ptr<EngineObserver> observer, const Clock& clock,
                                         const Options& options)
    : model_(std::move(model)),
      vocabulary_(std::move(vocabulary)),
      observer_(std::move(observer)),
      clock_(clock),
      token_budget_(options.token_budget),
      sessions_(clock, options.sessions),
      queue_(options.queue) {}

LanguageModelEngine::~LanguageModelEngine() {
  if (!worker_.joinable()) return;
  Drain(absl::InfinitePast());
  worker_.join();
}

absl::Status LanguageModelEngine::Generate(GenerationRequest request, std::shared_ptr<GenerationListener> listener) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Job> job,
                      MakeJob(std::move(request), std::move(listener), vocabulary_, *observer_, sessions_));
  return Submit(std::move(job));
}

absl::Status LanguageModelEngine::Score(ScoringRequest request, std::shared_ptr<ScoringListener> listener) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Job> job,
                      MakeJob(std::move(request), std::move(listener), vocabulary_, *observer_, sessions_));
  return Submit(std::move(job));
}

absl::Status LanguageModelEngine::CloseSession(const SessionKey& key) { return sessions_.Close(key); }

absl::Status LanguageModelEngine::Submit(std::unique_ptr<Job> job) {
  if (!job->complete()) LS_RETURN_IF_ERROR(step_loop_->CheckFits(job->MostTokens()));
  absl::StatusOr<TokenBudget::Share> tokens = TokenBudget::Take(token_budget_, job->stream().end());
  if (!tokens.ok()) return RefuseForNow(queue_.load(), std::string(tokens.status().message()), kLeastTimeForPrompts);
  job->held_tokens = *std::move(tokens);
  job->times.submitted = clock_.Now();
  return queue_.Push(std::move(job));
}

EngineState LanguageModelEngine::state() const { return step_loop_->state(); }

void LanguageModelEngine::Drain(absl::Time deadline) {
  queue_.Close();
  const auto ended = [this] { return worker_ended_; };
  std::unique_lock lock(mutex_);
  if (deadline != absl::InfiniteFuture()) {
    if (deadline > clock_.Now()) worker_ended_changed_.wait_until(lock, absl::ToChronoTime(deadline), ended);
    end_now_ = true;
  }
  worker_ended_changed_.wait(lock, ended);
}

void LanguageModelEngine::Work() {
  while (queue_.WaitForJob()) {
    do {
      if (end_now_) step_loop_->EndAll(absl::UnavailableError("the server is stopping"));
    } while (step_loop_->RunOnce());
  }
  std::lock_guard lock(mutex_);
  worker_ended_ = true;
  worker_ended_changed_.notify_all();
}

}  // namespace longshort
