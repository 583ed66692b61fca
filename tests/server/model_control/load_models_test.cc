#include "server/model_control/load_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/weights_of.h"
#include "tests/server/fakes/scripted_classifier.h"

namespace longshort::server::load_models_test {

using Workers = std::vector<models::WorkerDevice>;

constexpr int64_t kMebibyte = 1 << 20;

absl::StatusOr<std::unique_ptr<core::ModelRegistry>> LoadFor(const ServerOptions& options, const MachineLimits& machine,
                                                             const GuardedLoader& loader, ServerMetrics& metrics,
                                                             Logger& log) {
  return LoadModels(options, machine, EngineBudgetsOf(RequestMemoryOf(options, machine)), loader, metrics, log);
}

// Loads one classifier with this serving.json, and returns the status of that.
absl::Status LoadServedBy(const std::string& serving) {
  const std::string repository = absl::StrCat(testing::TempDir(), "/serving-", getpid());
  std::filesystem::remove_all(repository);
  std::filesystem::create_directories(repository + "/m/1");
  std::ofstream(repository + "/m/serving.json") << serving;
  ServerOptions options;
  options.model_repository = repository;
  options.max_image_pixels = kMebibyte;
  ServerMetrics metrics(options.latency_buckets);
  Logger log(LogFormat::kText, LogLevel::kError);
  const auto loader = [](const std::string&, const Workers&,
                         const models::LoadGuard&) -> absl::StatusOr<models::LoadedModel> {
    return models::LoadedClassifier{
        .weights = core::WeightsOf(std::make_unique<core::FakeClassifier>()), .tokenizer = {}, .preprocessor = {}};
  };
  const absl::Status status = LoadFor(options, {.cpus = 2, .memory_bytes = 0}, loader, metrics, log).status();
  std::filesystem::remove_all(repository);
  return status;
}

TEST(LoadModels, AServingFileThatIsWrongForItsModelIsNamed) {
  EXPECT_TRUE(LoadServedBy(R"({"max_batch_size": 4, "max_queue_delay": "1ms"})").ok());
  const absl::Status misplaced = LoadServedBy(R"({"max_streams": 4})");
  EXPECT_EQ(misplaced.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(misplaced.message()), testing::AllOf(testing::HasSubstr("model m version 1: "),
                                                               testing::HasSubstr("m/serving.json: max_streams")));
  EXPECT_THAT(std::string(LoadServedBy("{").message()), testing::HasSubstr("m/serving.json: not valid JSON"));
  EXPECT_EQ(LoadServedBy(R"({"version_policy": {"specific": [2]}})").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(LoadServedBy(R"({"devices": "cpu,cuda:0"})").message()),
              testing::HasSubstr("devices of model m is 'cpu,cuda:0'; cuda:0 is a GPU"));
}

// A repository of classifiers; those that are named image... are of images.
class ClassifierRepository {
 public:
  ClassifierRepository() {
    options_.model_repository = absl::StrCat(testing::TempDir(), "/load-models-", getpid());
    std::filesystem::remove_all(options_.model_repository);
    options_.preparation_threads = 2;
    options_.max_image_pixels = kMebibyte;
    options_.max_message_bytes = 8 * kMebibyte;
    options_.max_prompt_tokens = 8 * kMebibyte - (int64_t{64} << 10);  // the part has room for as many beside a prompt
  }
  ~ClassifierRepository() { std::filesystem::remove_all(options_.model_repository); }

  void Add(const std::string& name) {
    std::filesystem::create_directories(absl::StrCat(options_.model_repository, "/", name, "/1"));
  }

  absl::StatusOr<std::unique_ptr<core::ModelRegistry>> Load(int64_t memory_mebibytes, bool strict = false) {
    options_.strict = strict;
    const auto loader = [](const std::string& directory, const Workers&,
                           const models::LoadGuard&) -> absl::StatusOr<models::LoadedModel> {
      auto classifier = std::make_unique<core::FakeClassifier>();
      models::LoadedClassifier loaded{
          .weights = core::WeightsOf(std::move(classifier)), .tokenizer = {}, .preprocessor = {}};
      if (absl::StrContains(directory, "/heavy")) loaded.sizes.host_bytes = 20 * kMebibyte;
      if (absl::StrContains(directory, "/image")) loaded.preprocessor = ImageClassifier(nullptr).preprocessor;
      return loaded;
    };
    const MachineLimits machine = {.cpus = 2, .memory_bytes = memory_mebibytes * kMebibyte};
    return LoadFor(options_, machine, loader, metrics_, log_);
  }

 private:
  ServerOptions options_;
  ServerMetrics metrics_{options_.latency_buckets};
  Logger log_{LogFormat::kText, LogLevel::kError};
};

// MiB of messages, prompts, answers, connections of gRPC and HTTP, and the log.
constexpr int64_t kOfServer = 64 + 64 + 32 + 16 + 16 + 8;

// Loads `count` classifiers where there is so much memory, and returns the status of that.
absl::Status LoadClassifiers(int count, int64_t memory_mebibytes, const std::string& name) {
  ClassifierRepository repository;
  for (int i = 1; i <= count; ++i) repository.Add(absl::StrCat(name, i));
  return repository.Load(memory_mebibytes).status();
}

// For all models 16 MiB of items that wait.
TEST(LoadModels, ClassifiersShareTheMemoryOfTheirWaitingItems) {
  EXPECT_TRUE(LoadClassifiers(1, kOfServer + 16, "text").ok());
  EXPECT_TRUE(LoadClassifiers(60, kOfServer + 16, "text").ok());
  const absl::Status refused = LoadClassifiers(2, kOfServer + 15, "text");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("model text1 does not fit"));
}

// 40 MiB of decoding are too much for the model of images, and the others are served.
TEST(LoadModels, ModelsThatFitAreServedUnlessTheStartIsStrict) {
  ClassifierRepository repository;
  for (const char* name : {"a", "image", "z"}) repository.Add(name);
  const auto registry = repository.Load(kOfServer + 16);
  ASSERT_TRUE(registry.ok()) << registry.status();
  EXPECT_EQ((*registry)->List().size(), 2);
  const auto failures = (*registry)->failures();
  ASSERT_EQ(failures.size(), 1);
  EXPECT_EQ(failures.begin()->first.first, "image");
  EXPECT_EQ(repository.Load(kOfServer + 16, /*strict=*/true).status().code(), absl::StatusCode::kResourceExhausted);
}

// And for all models of images two threads that decode: 12 bytes a pixel, and a copy of a file of 8 MiB.
TEST(LoadModels, ModelsOfImagesShareTheMemoryForDecoding) {
  constexpr int64_t kEnough = kOfServer + 2 * (12 + 8) + 16;
  EXPECT_TRUE(LoadClassifiers(3, kEnough, "image").ok());
  EXPECT_TRUE(LoadClassifiers(4, kEnough, "image").ok());
  EXPECT_EQ(LoadClassifiers(3, kEnough - 1, "image").code(), absl::StatusCode::kResourceExhausted);
}

// 40 MiB of decoding, and for all models 16 of items that wait. A heavy model has 20 MiB.
TEST(LoadModels, WithoutAModelOfImagesTheMemoryForDecodingIsLeftForOthers) {
  ClassifierRepository repository;
  repository.Add("image1");
  const auto registry = repository.Load(kOfServer + 40 + 16);
  ASSERT_TRUE(registry.ok()) << registry.status();
  for (const char* name : {"heavy1", "heavy2", "image2"}) repository.Add(name);
  EXPECT_TRUE(absl::IsResourceExhausted((*registry)->LoadVersion("heavy1", 0).status()));

  ASSERT_TRUE((*registry)->Unload("image1", 0).ok());
  while (!(*registry)->LoadVersion("heavy1", 0).ok()) absl::SleepFor(absl::Milliseconds(1));  // until it is destroyed
  EXPECT_TRUE(absl::IsResourceExhausted((*registry)->LoadVersion("image2", 0).status()));
  EXPECT_TRUE((*registry)->LoadVersion("heavy2", 0).ok()) << "what was refused has left nothing";
}

TEST(LoadModels, AModelThatDoesNotFitIsRefusedBeforeItsWeightsAreRead) {
  const std::string repository = absl::StrCat(testing::TempDir(), "/no-room-", getpid());
  std::filesystem::create_directories(repository + "/m/1");
  ServerOptions options;
  options.model_repository = repository;
  ServerMetrics metrics(options.latency_buckets);
  Logger log(LogFormat::kText, LogLevel::kError);
  bool read = false;
  const auto loader = [&](const std::string&, const Workers&,
                          const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
    LS_RETURN_IF_ERROR(guard.check_room({.loading_bytes = int64_t{1} << 40}));
    read = true;
    return absl::InternalError("not refused");
  };
  const MachineLimits machine = {.cpus = 2, .memory_bytes = int64_t{1} << 30};
  const absl::Status refused = LoadFor(options, machine, loader, metrics, log).status();
  std::filesystem::remove_all(repository);
  EXPECT_FALSE(read);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("model m version 1: it does not fit"));
}

// A model for two workers on the CPU and one on a GPU, whose loading is seen: a language model, or a classifier where
// that has a workspace.
class ModelOnGpus {
 public:
  ModelOnGpus() {
    options_.model_repository = absl::StrCat(testing::TempDir(), "/on-gpus-", getpid());
    std::filesystem::create_directories(options_.model_repository + "/m/1");
    options_.serving.devices = "cpu:2,cuda:1";
    options_.serving.max_streams = 4;
    options_.max_message_bytes = 8 * kMebibyte;
    options_.max_prompt_tokens = 8 * kMebibyte;
  }
  ~ModelOnGpus() { std::filesystem::remove_all(options_.model_repository); }

  // Where GPU 1 has so much memory.
  absl::StatusOr<std::unique_ptr<core::ModelRegistry>> Load(int64_t memory_bytes, int64_t weight_bytes) {
    const auto loader = [&](const std::string&, const Workers& workers,
                            const models::LoadGuard& guard) -> absl::StatusOr<models::LoadedModel> {
      LS_RETURN_IF_ERROR(guard.check_room({.gpu_bytes = weight_bytes}));
      workers_ = workers;
      if (classifier_workspace_bytes_ > 0) {
        auto classifier = std::make_unique<core::FakeClassifier>();
        classifier->mutable_info().gpu_workspace_bytes = classifier_workspace_bytes_;
        return models::LoadedClassifier{
            .weights = core::WeightsOf(std::move(classifier)), .tokenizer = {}, .preprocessor = {}};
      }
      models::LanguageModelInfo info = core::SmallModelInfoWithRealPages();
      info.workspace_bytes = workspace_bytes_;
      auto model = std::make_unique<core::FakeLanguageModel>(info);
      model->on_device = [this](const models::WorkerDevice& device) { replicas_.push_back(device); };
      return models::LoadedLanguageModel{.weights = core::WeightsOf(std::move(model)),
                                         .tokenizer = nullptr,
                                         .sizes = {.gpu_bytes = planned_weight_bytes_}};
    };
    const MachineLimits machine = {
        .cpus = 4, .memory_bytes = 0, .gpus = models::Gpus{.memory_bytes = {0, memory_bytes}}};
    return LoadFor(options_, machine, loader, metrics_, log_);
  }

  ServerOptions options_;
  std::vector<models::WorkerDevice> workers_, replicas_;
  int64_t workspace_bytes_ = 0, planned_weight_bytes_ = 0, classifier_workspace_bytes_ = 0;

 private:
  ServerMetrics metrics_{options_.latency_buckets};
  Logger log_{LogFormat::kText, LogLevel::kError};
};

TEST(LoadModels, EveryWorkerGetsItsCacheWhereItsDeviceHasIt) {
  ModelOnGpus model;
  model.options_.serving.cache_bytes = 3 * kMebibyte;
  const auto registry = model.Load(/*memory_bytes=*/2 * kMebibyte, /*weight_bytes=*/1);
  ASSERT_TRUE(registry.ok()) << registry.status();
  ASSERT_EQ(model.workers_.size(), 3u);
  EXPECT_EQ(models::DeviceName(model.workers_[2]), "cuda:1");
  ASSERT_EQ(model.replicas_.size(), 3u);
  for (const models::WorkerDevice& replica : model.replicas_) EXPECT_EQ(replica.memory_bytes, kMebibyte);
}

TEST(LoadModels, AModelThatDoesNotFitOnItsGpuIsRefused) {
  ModelOnGpus model;
  const absl::Status weights = model.Load(kMebibyte, kMebibyte).status();
  EXPECT_EQ(weights.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(weights.message()), testing::HasSubstr("its weights need 1.0 MiB"));
  model.options_.serving.cache_bytes = 6 * kMebibyte;
  EXPECT_EQ(model.Load(2 * kMebibyte, 1).status().code(), absl::StatusCode::kResourceExhausted);
}

// Of 2 MiB the libraries have a tenth, and the worker a cache of 1 MiB.
TEST(LoadModels, WhatAWorkerTakesOfItsGpuBesideItsCacheIsPlanned) {
  ModelOnGpus model;
  model.options_.serving.cache_bytes = 3 * kMebibyte;
  model.workspace_bytes_ = kMebibyte / 2;
  EXPECT_TRUE(model.Load(2 * kMebibyte, 1).ok());
  model.workspace_bytes_ = kMebibyte;
  EXPECT_EQ(model.Load(2 * kMebibyte, 1).status().code(), absl::StatusCode::kResourceExhausted);
  model.workspace_bytes_ = 0;
  model.planned_weight_bytes_ = kMebibyte;
  EXPECT_EQ(model.Load(2 * kMebibyte, 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(LoadModels, AClassifierWhoseGraphsDoNotFitOnItsGpuIsRefused) {
  ModelOnGpus model;
  model.classifier_workspace_bytes_ = kMebibyte;
  EXPECT_TRUE(model.Load(2 * kMebibyte, 1).ok());
  model.classifier_workspace_bytes_ = 2 * kMebibyte;
  EXPECT_EQ(model.Load(2 * kMebibyte, 1).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace longshort::server::load_models_test
