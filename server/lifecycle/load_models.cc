#include "server/lifecycle/load_models.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/engine/clock.h"
#include "core/engine/language_model_engine.h"
#include "models/status_macros.h"
#include "server/lifecycle/cache_budget.h"
#include "server/lifecycle/grpc_endpoint.h"

namespace longshort {
namespace {

constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));

const RealClock& SystemClock() {
  static const RealClock clock;
  return clock;
}

int64_t BytesPerStream(const LanguageModel& model) {
  const CachePages bytes = model.PageBytes();
  const CachePages pages = model.PagesPerSequence();
  return bytes.window * pages.window + bytes.segment * pages.segment + bytes.open_chunk * pages.open_chunk;
}

int64_t WeightBytes(const LanguageModelInfo& info) { return info.parameters * (info.precision == "bf16" ? 2 : 4); }

// Tokens that the prompts of all models may have: an eighth of the memory, and so that two of the longest fit.
int64_t PromptTokens(const ServerOptions& options, const MachineLimits& machine) {
  return std::max(machine.memory_bytes / 8 / kTokenBytes, 2 * options.max_prompt_tokens);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRegistry>> LoadModels(const ServerOptions& options, const MachineLimits& machine,
                                                          const ModelRegistry::Loader& loader, ServerMetrics& metrics,
                                                          Logger& log) {
  const int64_t prompt_tokens = PromptTokens(options, machine);
  const auto prompts = std::make_shared<TokenBudget>(prompt_tokens);
  CacheBudget budget(machine.memory_bytes);
  budget.SetAside(MessageBufferBytes(options, machine));
  budget.SetAside(prompt_tokens * kTokenBytes);
  const auto make_engine = [&](const std::string& name, int64_t version,
                               LoadedModel any) -> absl::StatusOr<ServedModel::Kind> {
    if (!std::holds_alternative<LoadedLanguageModel>(any)) {
      return absl::UnimplementedError("classifiers are not served yet");
    }
    auto& loaded = std::get<LoadedLanguageModel>(any);
    budget.SetAside(WeightBytes(loaded.model->info()));
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
    ServedLanguageModel served{.info = info, .tokenizer = loaded.tokenizer, .engine = nullptr};
    LS_ASSIGN_OR_RETURN(served.engine, LanguageModelEngine::Create(std::move(loaded.model), std::move(loaded.tokenizer),
                                                                   metrics.ObserveEngine(name), SystemClock(), engine));
    return served;
  };
  LS_ASSIGN_OR_RETURN(std::unique_ptr<ModelRegistry> registry,
                      ModelRegistry::Load(options.model_repository, loader, make_engine));
  for (const std::string& reason : registry->skipped())
    log.Log(LogLevel::kWarning, "folder skipped", {{"reason", reason}});
  for (const std::shared_ptr<ServedModel>& model : registry->List()) {
    metrics.SetModelLoadDuration(model->name, model->version, model->load_duration);
  }
  return registry;
}

}  // namespace longshort
