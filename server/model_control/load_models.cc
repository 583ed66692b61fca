#include "server/model_control/load_models.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/classification/dynamic_batching_engine.h"
#include "core/generation/continuous_batching_engine.h"
#include "core/schedule/fair_pool.h"
#include "models/load_options.h"
#include "server/model_control/memory_budget.h"
#include "server/model_control/session_stores.h"
#include "server/monitoring/engine_observers.h"
#include "server/options/machine.h"
#include "server/options/server_options.h"
#include "server/options/serving_options.h"

namespace longshort::server {
namespace {

// The default cache holds 16 sequences of any length, and a quarter more for prefixes. Many short sequences may run
// instead, and each needs an open chunk.
int64_t UsualCacheBytes(const models::LanguageModelInfo& info, int64_t max_streams) {
  return core::Bytes(core::PagesForStreams(info, 16 + 4), info.page_bytes) + max_streams * info.page_bytes.open_chunk;
}

// GPU memory for a step's tensors, graphs and libraries.
int64_t LibraryBytes(int64_t gpu_bytes) { return gpu_bytes / 10; }

// Maximum items of one call: the queue never has room for more.
int64_t MaxItems(const ServingOptions& serving) {
  return std::min(serving.limits.max_queued, serving.limits.max_queued_per_client);
}

// Makes the engines of loaded models, and takes their memory from one budget.
class EngineMaker {
 public:
  EngineMaker(const ServerOptions& options, const MachineLimits& machine, EngineBudgets budgets,
              std::shared_ptr<core::FairPool> preparation, ServerMetrics& metrics, Logger& log)
      : options_(options),
        machine_(machine),
        preparation_(std::move(preparation)),
        metrics_(metrics),
        log_(log),
        budgets_(std::move(budgets)),
        budget_(MemoryBudget(machine.memory_bytes)),
        memory_(RequestMemoryOf(options, machine)),
        of_server_(budget_) {
    of_server_.Add(memory_.all() - memory_.sessions - memory_.items);
    if (!machine.gpus.has_value()) return;
    for (const int64_t bytes : machine.gpus->memory_bytes) {
      gpu_budgets_.push_back(MemoryBudget(bytes - LibraryBytes(bytes)));
    }
  }

  // Checks that the weights fit in the memory of the machine and of the workers' GPUs.
  absl::Status CheckRoom(const std::vector<models::WorkerDevice>& workers, const models::WeightSizes& sizes) const {
    LS_RETURN_IF_ERROR(CheckWeightsFit(*budget_, sizes.loading_bytes));
    for (const models::WorkerDevice& device : models::DistinctDevices(workers)) {
      if (device.kind == models::DeviceKind::kCpu) continue;
      LS_RETURN_IF_ERROR(CheckWeightsFit(*gpu_budgets_.at(device.index), sizes.gpu_bytes));
    }
    return absl::OkStatus();
  }

  // The workers for a model of this name.
  absl::StatusOr<std::vector<models::WorkerDevice>> Workers(const std::string& name) const {
    LS_ASSIGN_OR_RETURN(const ServingOptions serving, ReadServing(name, std::nullopt));
    return WorkersOf(name, serving);
  }

  absl::StatusOr<core::VersionPolicy> ReadPolicy(const std::string& name) const {
    LS_ASSIGN_OR_RETURN(const ServingOptions serving, ReadServing(name, std::nullopt));
    return serving.version_policy;
  }

  absl::StatusOr<core::ServedModel::Kind> Make(const std::string& name, int64_t version,
                                               models::LoadedLanguageModel loaded) {
    LS_ASSIGN_OR_RETURN(const ServingOptions serving, ReadServing(name, ModelKind::kLanguageModel));
    const models::LanguageModelInfo info = loaded.weights.info();
    core::ContinuousBatchingEngine::Options engine;
    LS_ASSIGN_OR_RETURN(engine.workers, WorkersOf(name, serving));
    const std::shared_ptr<Memory> memory = TakeForWeights(engine.workers, loaded.sizes);
    engine.queue.limits = serving.limits;
    engine.queue.order = serving.order;
    engine.token_budgets = budgets_.prompts;
    engine.sessions.time_to_live = serving.session_time_to_live;
    engine.sessions.tokens = budgets_.sessions;
    memory->common.push_back(CommonShare(of_sessions_, memory_.sessions));
    engine.session_store = sessions_.Of(name, info.fingerprint, SystemClock(), engine.sessions,
                                        [&] { return ObserveSessions(metrics_, name); });
    engine.step_loop.max_streams = serving.max_streams;
    engine.step_loop.steps.target_step = serving.step_time;
    engine.step_loop.steps.rounds = serving.order.rounds;
    LS_RETURN_IF_ERROR(ReserveCaches(name, serving, loaded.weights, memory->shares, engine));
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
                       {"cache_bytes_per_stream", core::Bytes(core::PagesForStreams(info, 1), info.page_bytes)},
                       {"fingerprint", info.fingerprint}});
    LogGpuMemory(name, version, engine.workers, {{"weight_bytes", loaded.sizes.gpu_bytes}}, &loaded.weights);
    core::ServedLanguageModel served{.memory = memory,
                                     .info = info,
                                     .tokenizer = loaded.tokenizer,
                                     .engine = nullptr,
                                     .max_items = MaxItems(serving)};
    LS_ASSIGN_OR_RETURN(served.engine,
                        core::ContinuousBatchingEngine::Create(
                            std::move(loaded.weights), std::move(loaded.tokenizer),
                            ObserveEngine(metrics_, log_, name, version, served.statistics, WorkerCount(engine)),
                            SystemClock(), engine));
    engine.session_store->SetTimeToLive(serving.session_time_to_live);  // a shared store may have another one
    return served;
  }

  absl::StatusOr<core::ServedModel::Kind> Make(const std::string& name, int64_t version,
                                               models::LoadedClassifier loaded) {
    LS_ASSIGN_OR_RETURN(const ServingOptions serving, ReadServing(name, ModelKind::kClassifier));
    const models::ClassifierInfo& info = loaded.weights.info();
    core::DynamicBatchingEngine::Options engine;
    LS_ASSIGN_OR_RETURN(engine.workers, WorkersOf(name, serving));
    const std::shared_ptr<Memory> memory = TakeForWeights(engine.workers, loaded.sizes, info.gpu_workspace_bytes);
    memory->common.push_back(CommonShare(of_items_, memory_.items));
    if (loaded.preprocessor != nullptr) memory->common.push_back(CommonShare(decoding_, DecodingBytes(options_)));
    LS_RETURN_IF_ERROR(CheckModelFits(*budget_, name));
    LS_RETURN_IF_ERROR(CheckGpus(name, engine.workers));
    engine.items.limits = serving.limits;
    engine.items.waiting_bytes = budgets_.items;
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
    LogGpuMemory(name, version, engine.workers,
                 {{"weight_bytes", loaded.sizes.gpu_bytes}, {"workspace_bytes", info.gpu_workspace_bytes}}, nullptr);
    core::ServedClassifier served{
        .memory = memory,
        .info = info,
        .tokenizer = std::move(loaded.tokenizer),
        .preprocessor = std::move(loaded.preprocessor),
        .engine = nullptr,
        .batches = {.max_size = serving.max_batch_size, .max_queue_delay = serving.max_queue_delay},
        .max_items = MaxItems(serving),
        .statistics = std::make_shared<core::ServingStatistics>(serving.max_batch_size)};
    LS_ASSIGN_OR_RETURN(served.engine,
                        core::DynamicBatchingEngine::Create(
                            std::move(loaded.weights), preparation_,
                            ObserveClassifier(metrics_, log_, name, version, served.statistics, WorkerCount(engine)),
                            SystemClock(), engine));
    return served;
  }

 private:
  // Memory that models have in common: it is taken with the first of them.
  std::shared_ptr<const Budget::Share> CommonShare(std::weak_ptr<Budget::Share>& common, int64_t bytes) const {
    std::shared_ptr<Budget::Share> share = common.lock();
    if (share == nullptr) {
      share = std::make_shared<Budget::Share>(budget_);
      share->Add(bytes);
      common = share;
    }
    return share;
  }

  template <typename EngineOptions>
  static int64_t WorkerCount(const EngineOptions& engine) {
    return static_cast<int64_t>(engine.workers.size());
  }

  // A model's workers share the threads that it would have with the server's --devices.
  absl::StatusOr<std::vector<models::WorkerDevice>> WorkersOf(const std::string& name,
                                                              const ServingOptions& serving) const {
    LS_ASSIGN_OR_RETURN(const Devices of_server, ParseDevices(options_.serving.devices));
    const absl::StatusOr<Devices> devices = ParseServedDevices(serving.devices, machine_);
    if (!devices.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("devices of model ", name, " is '", serving.devices, "'; ", devices.status().message()));
    }
    return WorkersOn(*devices, options_.threads * std::max(1, of_server.cpu_workers));
  }

  // A model's shares of the machine's memory, into which every model is loaded first, and of the memory of its GPUs.
  struct Memory {
    std::vector<Budget::Share> shares;  // of the machine's memory, then of each GPU's
    std::vector<std::shared_ptr<const Budget::Share>> common = {};
  };
  std::shared_ptr<Memory> TakeForWeights(const std::vector<models::WorkerDevice>& workers,
                                         const models::WeightSizes& sizes, int64_t gpu_workspace_bytes = 0) const {
    auto memory = std::make_shared<Memory>();
    memory->shares.emplace_back(budget_).Add(sizes.host_bytes);
    for (const models::WorkerDevice& device : models::DistinctDevices(workers)) {
      if (device.kind == models::DeviceKind::kCpu) continue;
      memory->shares.emplace_back(gpu_budgets_.at(device.index)).Add(sizes.gpu_bytes + gpu_workspace_bytes);
    }
    return memory;
  }

  // Reserves the workers' caches in the memory of their devices. `shares` are those of TakeForWeights.
  static absl::Status ReserveCaches(const std::string& name, const ServingOptions& serving,
                                    const models::LanguageModelWeights& weights, std::vector<Budget::Share>& shares,
                                    core::ContinuousBatchingEngine::Options& engine) {
    const int64_t workers = WorkerCount(engine), gpus = static_cast<int64_t>(shares.size()) - 1;
    // For `count` of the workers.
    const auto wanted = [&](int64_t count) {
      CacheWish wish;
      if (serving.cache_bytes > 0) wish.bytes = std::max<int64_t>(1, serving.cache_bytes * count / workers);
      if (serving.given.count("cache_bytes") > 0) wish.source = "cache_bytes in serving.json";
      return wish;
    };
    const auto usual = [&](const models::WorkerDevice& worker) {
      return UsualCacheBytes(weights.info(worker), serving.max_streams);
    };
    if (const int64_t cpu_workers = workers - gpus; cpu_workers > 0) {
      LS_ASSIGN_OR_RETURN(engine.step_loop.cache_bytes, TakeForCache(shares.front(), name, wanted(cpu_workers),
                                                                     cpu_workers * usual(engine.workers.front())));
      if (gpus == 0) return absl::OkStatus();  // workers share it equally
      for (int64_t i = 0; i < cpu_workers; ++i) {
        engine.workers[i].memory_bytes = std::max<int64_t>(1, engine.step_loop.cache_bytes / cpu_workers);
      }
    }
    for (int64_t i = 0; i < gpus; ++i) {
      models::WorkerDevice& worker = engine.workers[workers - gpus + i];
      shares[1 + i].Add(weights.info(worker).workspace_bytes);
      LS_ASSIGN_OR_RETURN(worker.memory_bytes, TakeForCache(shares[1 + i], name, wanted(1), usual(worker)));
      engine.step_loop.cache_bytes += worker.memory_bytes;
    }
    return absl::OkStatus();
  }

  // Reads how the model is served. Read at each load, because the file may have changed. `kind`: checked if known.
  absl::StatusOr<ServingOptions> ReadServing(const std::string& name, std::optional<ModelKind> kind) const {
    const std::string path = core::ServingFile(options_.model_repository, name);
    LS_ASSIGN_OR_RETURN(ServingOptions serving, ReadServingOptions(path, options_.serving));
    if (kind.has_value()) LS_RETURN_IF_ERROR(CheckKind(serving, path, *kind));
    return serving;
  }

  // Checks that the reserved memory fits on the workers' GPUs.
  absl::Status CheckGpus(const std::string& name, const std::vector<models::WorkerDevice>& workers) const {
    for (const models::WorkerDevice& device : models::DistinctDevices(workers)) {
      if (device.kind != models::DeviceKind::kCpu)
        LS_RETURN_IF_ERROR(CheckModelFits(*gpu_budgets_.at(device.index), name));
    }
    return absl::OkStatus();
  }

  // Logs the memory that a model needs on each of its GPUs. `language_model`: null for a classifier, which has no
  // cache.
  void LogGpuMemory(const std::string& name, int64_t version, const std::vector<models::WorkerDevice>& workers,
                    const LogFields& taken, const models::LanguageModelWeights* language_model) {
    for (const models::WorkerDevice& worker : workers) {
      if (worker.kind == models::DeviceKind::kCpu) continue;
      const int64_t gpu_bytes = machine_.gpus->memory_bytes.at(worker.index);
      LogFields fields = {{"model", name},
                          {"version", version},
                          {"device", models::DeviceName(worker)},
                          {"gpu_bytes", gpu_bytes},
                          {"library_bytes", LibraryBytes(gpu_bytes)}};
      fields.insert(fields.end(), taken.begin(), taken.end());
      if (language_model != nullptr) {
        fields.emplace_back("workspace_bytes", language_model->info(worker).workspace_bytes);
        fields.emplace_back("cache_bytes", worker.memory_bytes);
      }
      log_.Info("model on GPU", fields);
    }
  }

  void LogModel(const ServingOptions& serving, LogFields fields) {
    if (!serving.given.empty()) {
      fields.emplace_back("serving", absl::StrJoin(serving.given, ", ", absl::PairFormatter("=")));
    }
    log_.Info("model configured", fields);
  }

  const ServerOptions options_;
  const MachineLimits machine_;
  const std::shared_ptr<core::FairPool> preparation_;
  ServerMetrics& metrics_;
  Logger& log_;
  const EngineBudgets budgets_;
  const std::shared_ptr<Budget> budget_;
  const RequestMemory memory_;
  Budget::Share of_server_;
  // Each GPU's memory without LibraryBytes.
  std::vector<std::shared_ptr<Budget>> gpu_budgets_;
  SessionStores sessions_;
  std::weak_ptr<Budget::Share> of_items_;     // common to all classifiers
  std::weak_ptr<Budget::Share> of_sessions_;  // common to all language models
  std::weak_ptr<Budget::Share> decoding_;     // common to all models of images, as their threads are
};

}  // namespace

EngineBudgets EngineBudgetsOf(const RequestMemory& sizes, const std::shared_ptr<Budget>& parent) {
  return {.prompts = core::PromptTokenBudgets(sizes.prompts / core::TokenStream::kTokenBytes, parent),
          .sessions = core::SessionTokenBudgets(sizes.sessions / core::TokenStream::kTokenBytes, parent),
          .items = core::WaitingByteBudgets(sizes.items, parent)};
}

absl::StatusOr<std::unique_ptr<core::ModelRegistry>> LoadModels(const ServerOptions& options,
                                                                const MachineLimits& machine, EngineBudgets budgets,
                                                                const GuardedLoader& loader, ServerMetrics& metrics,
                                                                Logger& log) {
  LS_ASSIGN_OR_RETURN(std::shared_ptr<core::FairPool> preparation, core::FairPool::Create(options.preparation_threads));
  // The registry owns it, because models are loaded while the server runs.
  auto maker =
      std::make_shared<EngineMaker>(options, machine, std::move(budgets), std::move(preparation), metrics, log);
  auto load = [loader, maker](const std::string& directory,
                              const std::string& served_fingerprint) -> absl::StatusOr<models::LoadedModel> {
    const std::string name = std::filesystem::path(directory).parent_path().filename();
    LS_ASSIGN_OR_RETURN(const std::vector<models::WorkerDevice> workers, maker->Workers(name));
    const auto check_room = [&](const models::WeightSizes& sizes) { return maker->CheckRoom(workers, sizes); };
    return loader(directory, workers, {.check_room = check_room, .served_fingerprint = served_fingerprint});
  };
  auto read_policy = [maker](const std::string& name) { return maker->ReadPolicy(name); };
  auto make_engine = [maker = std::move(maker)](const std::string& name, int64_t version, models::LoadedModel loaded) {
    return std::visit([&](auto& model) { return maker->Make(name, version, std::move(model)); }, loaded);
  };
  LS_ASSIGN_OR_RETURN(std::unique_ptr<core::ModelRegistry> registry,
                      core::ModelRegistry::Load(options.model_repository, std::move(load), std::move(make_engine),
                                                std::move(read_policy), options.strict));
  for (const std::string& reason : registry->skipped())
    log.Log(LogLevel::kWarning, "folder skipped", {{"reason", reason}});
  for (const auto& [id, failure] : registry->failures()) {
    if (registry->skipped().count(std::string(failure.message())) > 0) continue;
    metrics.CountModelLoadFailure();
    LogFields fields = {{"model", id.first}};
    if (id.second != 0) fields.emplace_back("version", id.second);
    fields.emplace_back("error", std::string(failure.message()));
    log.Error("model not loaded; it is not served", std::move(fields));
  }
  metrics.SetModelsNotLoaded(registry->failures().size());
  for (const std::shared_ptr<core::ServedModel>& model : registry->List()) {
    metrics.SetModelLoadDuration(model->name, model->version, model->load_duration);
  }
  return registry;
}

}  // namespace longshort::server
