#include "server/assembly/load_models.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/cache/cache_capacity.h"
#include "core/cache/cache_pages.h"
#include "core/classification/dynamic_batching_engine.h"
#include "core/classification/preparation_pool.h"
#include "core/generation/continuous_batching_engine.h"
#include "core/jobs/prompt_token_budget.h"
#include "server/assembly/cache_budget.h"
#include "server/assembly/session_stores.h"
#include "server/observers/engine_observers.h"
#include "server/options/devices.h"
#include "server/options/memory_shares.h"
#include "server/options/served_image_limits.h"
#include "server/options/serving_options.h"

namespace longshort {
namespace {

constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(int32_t));

const RealClock& SystemClock() {
  static const RealClock clock;
  return clock;
}

// A cache of no size that was asked for holds 16 sequences of any length and a quarter more of prefixes; the many short
// ones that may run instead each need an open chunk.
int64_t UsualCacheBytes(const LanguageModel& model, int64_t max_streams) {
  return Bytes(PagesForStreams(model.info(), 16 + 4), model.PageBytes()) + max_streams * model.PageBytes().open_chunk;
}

int64_t WeightBytes(int64_t parameters, const std::string& precision) {
  return parameters * (precision == "bf16" ? 2 : 4);
}

// Items of one call: what the queue never has room for is no use asking for later.
int64_t MaxItems(const ServingOptions& serving) {
  return std::min(serving.limits.max_queued, serving.limits.max_queued_per_client);
}

// Gives loaded models their engines, and takes the memory that they need out of one budget.
class EngineMaker {
 public:
  EngineMaker(const ServerOptions& options, const MachineLimits& machine, std::shared_ptr<PreparationPool> preparation,
              ServerMetrics& metrics, Logger& log)
      : options_(options),
        machine_(machine),
        preparation_(std::move(preparation)),
        metrics_(metrics),
        log_(log),
        prompts_(PromptTokenBudget(PromptTokens(options, machine))),
        budget_(std::make_shared<CacheBudget>(machine.memory_bytes)) {
    budget_->SetAside(MessageBufferBytes(options, machine));
    budget_->SetAside(PromptTokens(options, machine) * kTokenBytes);
    budget_->SetAside(SessionTransferBytes(options, machine));
  }

  absl::Status CheckRoom(int64_t weight_bytes) const { return budget_->CheckRoom(weight_bytes); }

  absl::StatusOr<VersionPolicy> ReadPolicy(const std::string& name) const {
    LS_ASSIGN_OR_RETURN(const ServingOptions serving, ReadServing(name, std::nullopt));
    return serving.version_policy;
  }

  absl::StatusOr<ServedModel::Kind> Make(const std::string& name, int64_t version, LoadedLanguageModel loaded) {
    LS_ASSIGN_OR_RETURN(const ServingOptions serving, ReadServing(name, ModelKind::kLanguageModel));
    const LanguageModelInfo info = loaded.model->info();
    auto share = std::make_shared<BudgetShare>(budget_);
    share->SetAside(WeightBytes(info.parameters, info.precision));
    ContinuousBatchingEngine::Options engine;
    engine.queue.limits = serving.limits;
    engine.queue.order = serving.order;
    engine.token_budget = prompts_;
    engine.sessions.time_to_live = serving.session_time_to_live;
    engine.sessions.max_tokens = SessionTokens(options_, machine_);
    engine.sessions.max_tokens_per_client = SessionTokensOfClient(options_, engine.sessions.max_tokens);
    share->SetAside(engine.sessions.max_tokens * kTokenBytes);
    engine.session_store = sessions_.Of(name, info.fingerprint, SystemClock(), engine.sessions,
                                        [&] { return ObserveSessions(metrics_, name); });
    LS_RETURN_IF_ERROR(SetWorkers(serving, engine));
    engine.step_loop.max_streams = serving.max_streams;
    engine.step_loop.steps.target_step = serving.step_time;
    engine.step_loop.steps.rounds = serving.order.rounds;
    LS_ASSIGN_OR_RETURN(engine.step_loop.cache_bytes,
                        share->Reserve(name, serving.cache_bytes,
                                       WorkerCount(engine) * UsualCacheBytes(*loaded.model, serving.max_streams)));
    LogModel(serving, {{"model", name},
                       {"version", version},
                       {"architecture", std::string("language_model")},
                       {"parameters", info.parameters},
                       {"vocabulary_size", info.vocabulary_size},
                       {"precision", info.precision},
                       {"memory_length", info.memory_length},
                       {"workers", WorkerCount(engine)},
                       {"max_streams", engine.step_loop.max_streams},
                       {"cache_bytes", engine.step_loop.cache_bytes},
                       {"cache_bytes_per_stream", Bytes(PagesForStreams(info, 1), loaded.model->PageBytes())},
                       {"fingerprint", info.fingerprint}});
    ServedLanguageModel served{.memory = std::move(share),
                               .info = info,
                               .tokenizer = loaded.tokenizer,
                               .engine = nullptr,
                               .max_items = MaxItems(serving)};
    LS_ASSIGN_OR_RETURN(
        served.engine, ContinuousBatchingEngine::Create(std::move(loaded.model), std::move(loaded.tokenizer),
                                                        ObserveEngine(metrics_, log_, name, version, served.statistics),
                                                        SystemClock(), engine));
    engine.session_store->SetTimeToLive(serving.session_time_to_live);  // it may have been another's
    return served;
  }

  absl::StatusOr<ServedModel::Kind> Make(const std::string& name, int64_t version, LoadedClassifier loaded) {
    LS_ASSIGN_OR_RETURN(const ServingOptions serving, ReadServing(name, ModelKind::kClassifier));
    const ClassifierInfo info = loaded.classifier->info();
    auto share = std::make_shared<BudgetShare>(budget_);
    share->SetAside(WeightBytes(info.parameters, info.precision));
    share->SetAside(WaitingBytes(options_, machine_));
    if (loaded.preprocessor != nullptr) share->Keep(DecodingShare());
    LS_RETURN_IF_ERROR(budget_->Check(name));
    DynamicBatchingEngine::Options engine;
    LS_RETURN_IF_ERROR(SetWorkers(serving, engine));
    engine.items.limits = serving.limits;
    engine.items.max_waiting_bytes = WaitingBytes(options_, machine_);
    engine.items.batches.max_batch_size = serving.max_batch_size;
    engine.items.batches.max_batch_tokens = serving.max_batch_tokens;
    engine.items.batches.max_queue_delay = serving.max_queue_delay;
    engine.items.batches.order = serving.order;
    LogModel(serving, {{"model", name},
                       {"version", version},
                       {"architecture", info.architecture},
                       {"parameters", info.parameters},
                       {"classes", info.classes},
                       {"precision", info.precision},
                       {"workers", WorkerCount(engine)},
                       {"max_batch_size", engine.items.batches.max_batch_size},
                       {"fingerprint", info.fingerprint}});
    ServedClassifier served{.memory = std::move(share),
                            .info = info,
                            .tokenizer = std::move(loaded.tokenizer),
                            .preprocessor = std::move(loaded.preprocessor),
                            .engine = nullptr,
                            .batches = {.max_size = serving.max_batch_size, .max_queue_delay = serving.max_queue_delay},
                            .max_items = MaxItems(serving),
                            .statistics = std::make_shared<ServingStatistics>(serving.max_batch_size)};
    LS_ASSIGN_OR_RETURN(
        served.engine, DynamicBatchingEngine::Create(
                           std::move(loaded.classifier), preparation_,
                           ObserveClassifier(metrics_, log_, name, version, served.statistics), SystemClock(), engine));
    return served;
  }

 private:
  // All models of images share the threads that decode.
  std::shared_ptr<const BudgetShare> DecodingShare() {
    std::shared_ptr<BudgetShare> share = decoding_.lock();
    if (share == nullptr) {
      share = std::make_shared<BudgetShare>(budget_);
      share->SetAside(DecodingBytes(options_));
      decoding_ = share;
    }
    return share;
  }

  template <typename EngineOptions>
  static int64_t WorkerCount(const EngineOptions& engine) {
    return static_cast<int64_t>(engine.workers.size());
  }

  // The workers of this model divide the threads that its workers would have by the server's options.
  template <typename EngineOptions>
  absl::Status SetWorkers(const ServingOptions& serving, EngineOptions& engine) const {
    LS_ASSIGN_OR_RETURN(const Devices of_server, ParseServedDevices(options_.devices));
    LS_ASSIGN_OR_RETURN(const Devices devices, ParseServedDevices(serving.devices));
    engine.workers = WorkersOn(devices, options_.threads * std::max(1, of_server.cpu_workers));
    return absl::OkStatus();
  }

  // How this model, of a kind if that is known, is served. Read at each loading: the file may have changed.
  absl::StatusOr<ServingOptions> ReadServing(const std::string& name, std::optional<ModelKind> kind) const {
    const std::string path = ServingFile(options_.model_repository, name);
    LS_ASSIGN_OR_RETURN(ServingOptions serving, ReadServingOptions(path, DefaultServingOptions(options_)));
    if (kind.has_value()) LS_RETURN_IF_ERROR(CheckKind(serving, path, *kind));
    return serving;
  }

  void LogModel(const ServingOptions& serving, LogFields fields) {
    if (!serving.given.empty()) {
      fields.emplace_back("serving", absl::StrJoin(serving.given, ", ", absl::PairFormatter("=")));
    }
    log_.Info("model", fields);
  }

  const ServerOptions options_;
  const MachineLimits machine_;
  const std::shared_ptr<PreparationPool> preparation_;
  ServerMetrics& metrics_;
  Logger& log_;
  const std::shared_ptr<Budget> prompts_;
  const std::shared_ptr<CacheBudget> budget_;
  SessionStores sessions_;
  std::weak_ptr<BudgetShare> decoding_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRegistry>> LoadModels(const ServerOptions& options, const MachineLimits& machine,
                                                          const GuardedLoader& loader, ServerMetrics& metrics,
                                                          Logger& log) {
  LS_ASSIGN_OR_RETURN(std::shared_ptr<PreparationPool> preparation,
                      PreparationPool::Create(options.preparation_threads));
  // The registry keeps it: models come and go while the server runs.
  auto maker = std::make_shared<EngineMaker>(options, machine, std::move(preparation), metrics, log);
  auto load = [loader, maker](const std::string& directory) {
    return loader(directory, {.check_room = [maker](int64_t weight_bytes) { return maker->CheckRoom(weight_bytes); }});
  };
  auto read_policy = [maker](const std::string& name) { return maker->ReadPolicy(name); };
  auto make_engine = [maker = std::move(maker)](const std::string& name, int64_t version, LoadedModel loaded) {
    return std::visit([&](auto& model) { return maker->Make(name, version, std::move(model)); }, loaded);
  };
  LS_ASSIGN_OR_RETURN(
      std::unique_ptr<ModelRegistry> registry,
      ModelRegistry::Load(options.model_repository, std::move(load), std::move(make_engine), std::move(read_policy)));
  for (const std::string& reason : registry->skipped())
    log.Log(LogLevel::kWarning, "folder skipped", {{"reason", reason}});
  for (const std::shared_ptr<ServedModel>& model : registry->List()) {
    metrics.SetModelLoadDuration(model->name, model->version, model->load_duration);
  }
  return registry;
}

}  // namespace longshort
