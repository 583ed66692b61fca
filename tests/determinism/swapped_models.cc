#include "tests/determinism/swapped_models.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/cache/cache_grid.h"
#include "core/classification/dynamic_batching_engine.h"
#include "core/generation/continuous_batching_engine.h"
#include "gtest/gtest.h"

namespace longshort {
namespace {

// Some of everything in a mix of a few thousand steps. A request that meets one failure after the other is ended, so
// they are spread.
constexpr FaultPlan kFaults = {
    .throw_every = 331, .fail_every = 67, .stall_every = 401, .stall = absl::Milliseconds(10), .no_replica_every = 9};

constexpr int kLanguageModelWorkers = 3;
constexpr int kClassifierWorkers = 2;
constexpr int64_t kStreamsOfWorker = 8;
// Each worker's cache has room for two sequences of any length, or some more short ones.
constexpr int64_t kWholeSequencesOfWorker = 2;

}  // namespace

SwappedModels::SwappedModels(const std::vector<TestedLanguageModel>& language_models,
                             const std::vector<TestedClassifier>& classifiers, int threads, Happenings& happenings)
    : language_models_(language_models),
      classifiers_(classifiers),
      threads_(threads),
      happenings_(happenings),
      pool_(core::FairPool::Create(1).value()) {
  for (const auto& model : language_models) versions_[model.name] = 1;
  for (const auto& model : classifiers) versions_[model.name] = 1;
  for (const auto& [name, version] : versions_) {
    faults_[name] = std::make_shared<FaultCounts>();
    std::filesystem::create_directories(core::VersionDirectory(repository_.path(), name, version));
  }
  registry_ =
      core::ModelRegistry::Load(
          repository_.path(), [this](const std::string& directory, const std::string&) { return Load(directory); },
          [this](const std::string& name, int64_t, models::LoadedModel loaded) {
            return Serve(name, std::move(loaded));
          })
          .value();
}

void SwappedModels::Swap(const std::string& name) {
  const int64_t next = versions_[name] + 1;
  std::filesystem::create_directories(core::VersionDirectory(repository_.path(), name, next));
  if (const auto loaded = registry_->LoadVersion(name, next); !loaded.ok()) {
    ++happenings_.missing_replicas;
    return;
  }
  EXPECT_TRUE(registry_->Unload(name, versions_[name]).ok());
  versions_[name] = next;
  ++happenings_.swaps;
}

absl::StatusOr<models::LoadedModel> SwappedModels::Load(const std::string& directory) const {
  const std::string name = std::filesystem::path(directory).parent_path().filename();
  for (const auto& [tested, weights] : language_models_) {
    if (tested != name) continue;
    return models::LoadedLanguageModel{.weights = WithFaults(weights, kFaults, faults_.at(name)), .tokenizer = nullptr};
  }
  for (const TestedClassifier& tested : classifiers_) {
    if (tested.name != name) continue;
    return models::LoadedClassifier{.weights = WithFaults(tested.weights, kFaults, faults_.at(name)),
                                    .tokenizer = nullptr,
                                    .preprocessor = nullptr};
  }
  return absl::NotFoundError(absl::StrCat("no tested model is called ", name));
}

absl::StatusOr<core::ServedModel::Kind> SwappedModels::Serve(const std::string&, models::LoadedModel loaded) {
  if (auto* language_model = std::get_if<models::LoadedLanguageModel>(&loaded)) {
    const models::LanguageModelInfo info = language_model->weights.info();
    const models::CachePages of_worker = core::PagesForStreams(info, kWholeSequencesOfWorker);
    core::ContinuousBatchingEngine::Options options{
        .queue = {.limits = {.max_queued_cost = absl::InfiniteDuration()}},
        .step_loop = {.max_streams = kStreamsOfWorker * kLanguageModelWorkers,
                      .cache_bytes = core::Bytes(of_worker, info.page_bytes) * kLanguageModelWorkers},
        .workers = models::CpuWorkers(kLanguageModelWorkers, threads_)};
    core::ServedLanguageModel served{.info = info, .tokenizer = nullptr, .engine = nullptr};
    LS_ASSIGN_OR_RETURN(served.engine,
                        core::ContinuousBatchingEngine::Create(std::move(language_model->weights), nullptr,
                                                               CountingObserver(happenings_), clock_, options));
    return served;
  }
  auto& weights = std::get<models::LoadedClassifier>(loaded).weights;
  core::DynamicBatchingEngine::Options options;
  options.items.limits.max_queued_cost = absl::InfiniteDuration();
  options.workers = models::CpuWorkers(kClassifierWorkers, threads_);
  core::ServedClassifier served{
      .info = weights.info(), .tokenizer = nullptr, .preprocessor = nullptr, .engine = nullptr};
  LS_ASSIGN_OR_RETURN(
      served.engine, core::DynamicBatchingEngine::Create(std::move(weights), pool_,
                                                         CountingClassificationObserver(happenings_), clock_, options));
  return served;
}

}  // namespace longshort
