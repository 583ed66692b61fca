#include "server/lifecycle/load_models.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/engine/clock.h"
#include "core/engine/language_model_engine.h"
#include "models/status_macros.h"
#include "server/lifecycle/cache_budget.h"

namespace longshort {
namespace {

const RealClock& SystemClock() {
  static const RealClock clock;
  return clock;
}

int64_t BytesPerStream(const LanguageModel& model) {
  const CachePages bytes = model.PageBytes();
  const CachePages pages = model.PagesPerSequence();
  return bytes.window * pages.window + bytes.segment * pages.segment + bytes.open_chunk * pages.open_chunk;
}

// Tokens that the prompts of all models may have: an eighth of the memory, and so that two of the longest fit.
int64_t PromptTokens(const ServerOptions& options, const MachineLimits& machine) {
  constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));
  return std::max(machine.memory_bytes / 8 / kTokenBytes, 2 * options.max_prompt_tokens);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRegistry>> LoadModels(const ServerOptions& options, const MachineLimits& machine,
                                                          const ModelRegistry::Loader& loader, ServerMetrics& metrics,
                                                          Logger& log) {
  CacheBudget budget(machine.memory_bytes);
  const auto prompts = std::make_shared<TokenBudget>(PromptTokens(options, machine));
  const auto make_engine = [&](const std::string& name, int64_t version,
                               LoadedLanguageModel loaded) -> absl::StatusOr<std::unique_ptr<Engine>> {
    const int64_t bytes_per_stream = BytesPerStream(*loaded.model);
    LanguageModelEngine::Options engine;
    engine.max_queued_requests = options.max_queued_requests;
    engine.token_budget = prompts;
    LS_ASSIGN_OR_RETURN(engine.step_loop.max_streams, budget.Reserve(name, bytes_per_stream, options.max_streams));
    engine.step_loop.max_rows_per_step = std::max(engine.step_loop.max_rows_per_step, engine.step_loop.max_streams);
    const LanguageModelInfo info = loaded.model->info();
    log.Info("model", {{"model", name},
                       {"version", version},
                       {"architecture", std::string("language_model")},
                       {"parameters", info.parameters},
                       {"vocabulary_size", info.vocabulary_size},
                       {"precision", info.precision},
                       {"memory_length", info.memory_length},
                       {"max_streams", engine.step_loop.max_streams},
                       {"cache_bytes_per_stream", bytes_per_stream},
                       {"fingerprint", info.fingerprint}});
    return LanguageModelEngine::Create(std::move(loaded.model), std::move(loaded.tokenizer),
                                       metrics.ObserveEngine(name), SystemClock(), engine);
  };
  LS_ASSIGN_OR_RETURN(std::unique_ptr<ModelRegistry> registry,
                      ModelRegistry::Load(options.model_repository, loader, make_engine));
  for (const std::shared_ptr<ServedModel>& model : registry->List()) {
    metrics.SetModelLoadDuration(model->name, model->version, model->load_duration);
  }
  return registry;
}

}  // namespace longshort
