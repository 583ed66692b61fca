// A registry over a repository of folders, whose models are fakes.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/generation/continuous_batching_engine.h"
#include "core/registry/model_registry.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core {

class ModelRegistryTest : public testing::Test {
 protected:
  ModelRegistryTest()
      : repository_(std::filesystem::path(testing::TempDir()) /
                    ("repository_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(repository_);
    std::filesystem::create_directories(repository_);
  }
  ~ModelRegistryTest() override { std::filesystem::remove_all(repository_); }

  absl::StatusOr<std::unique_ptr<ModelRegistry>> Load(bool strict = true) {
    const auto loader = [this](const std::string& directory,
                               const std::string& served) -> absl::StatusOr<models::LoadedModel> {
      loaded_.push_back(std::filesystem::relative(directory, repository_).string());
      if (on_load_ != nullptr) on_load_();
      if (std::filesystem::exists(std::filesystem::path(directory) / "model.safetensors.broken"))
        return absl::DataLossError("tensor x is missing");
      if (full_) return absl::ResourceExhaustedError("it does not fit");
      if (!served.empty() && Weights(directory) == served) return absl::AlreadyExistsError("served");
      if (disk_is_away_) return absl::UnavailableError("cannot read");
      if (stopping_) return absl::CancelledError("nothing is loaded any more");
      return models::LoadedLanguageModel{.weights = WeightsOf(std::make_unique<FakeLanguageModel>()),
                                         .tokenizer = nullptr};
    };
    const auto factory = [this](const std::string& name, int64_t version,
                                models::LoadedModel loaded) -> absl::StatusOr<ServedModel::Kind> {
      auto& language_model = std::get<models::LoadedLanguageModel>(loaded);
      ServedLanguageModel served{.info = language_model.weights.info(), .tokenizer = nullptr, .engine = nullptr};
      served.info.fingerprint = Weights(VersionDirectory(repository_.string(), name, version));
      LS_ASSIGN_OR_RETURN(served.engine, ContinuousBatchingEngine::Create(std::move(language_model.weights), nullptr,
                                                                          nullptr, clock_, {}));
      return served;
    };
    const auto policies = [this](const std::string& name) { return PolicyOf(name); };
    return ModelRegistry::Load(repository_.string(), loader, factory, policies, strict);
  }

  // serving.json holds "latest 2", "specific 1 3" or "all"; nothing else can be read.
  absl::StatusOr<VersionPolicy> PolicyOf(const std::string& name) const {
    std::ifstream file(ServingFile(repository_.string(), name));
    std::string word;
    VersionPolicy policy;
    if (!(file >> word)) return policy;
    if (word == "latest" && file >> policy.latest) return policy;
    if (word == "all") return VersionPolicy{.kind = VersionPolicy::Kind::kAll};
    if (word != "specific") return absl::InvalidArgumentError("serving.json is broken");
    policy.kind = VersionPolicy::Kind::kSpecific;
    for (int64_t version = 0; file >> version;) policy.specific.insert(version);
    return policy;
  }

  void MakeFolder(const std::string& path) { std::filesystem::create_directories(repository_ / path); }
  void MakeFile(const std::string& path) { std::ofstream(repository_ / path) << "x"; }
  static std::string Weights(const std::string& directory) {
    std::stringstream text;
    text << "weights " << std::ifstream(std::filesystem::path(directory) / "model.safetensors").rdbuf();
    return text.str();
  }
  void WriteWeights(const std::string& version, const std::string& text) {
    MakeFolder(version);
    std::ofstream(repository_ / version / "model.safetensors") << text;
  }
  // In one move, and with a time of its own however coarse the file system's clock is.
  void WriteServing(const std::string& model, const std::string& text) {
    const std::filesystem::path beside = repository_ / model / ".serving.json";
    std::ofstream(beside) << text;
    std::filesystem::last_write_time(beside, std::filesystem::file_time_type() + std::chrono::seconds(++writes_));
    std::filesystem::rename(beside, repository_ / model / "serving.json");
  }

  const std::filesystem::path repository_;
  RealClock clock_;
  std::vector<std::string> loaded_;
  std::function<void()> on_load_;
  bool stopping_ = false;
  bool disk_is_away_ = false;
  bool full_ = false;  // no further model fits
  int writes_ = 0;
};

inline std::vector<std::string> Names(const ModelRegistry& registry) {
  std::vector<std::string> names;
  for (const auto& served : registry.List()) names.push_back(absl::StrCat(served->name, "/", served->version));
  return names;
}

inline std::string Describe(const RegistryEvent& event) {
  const char* kind = event.kind == RegistryEvent::Kind::kLoaded      ? "loaded"
                     : event.kind == RegistryEvent::Kind::kReloaded  ? "reloaded"
                     : event.kind == RegistryEvent::Kind::kUnchanged ? "unchanged"
                     : event.kind == RegistryEvent::Kind::kUnloaded  ? "unloaded"
                     : event.kind == RegistryEvent::Kind::kFailed    ? "failed"
                     : event.kind == RegistryEvent::Kind::kStopped   ? "stopped"
                                                                     : "skipped";
  return absl::StrCat(kind, " ", event.model, "/", event.version,
                      event.changed.empty() ? "" : absl::StrCat(" (", event.changed, ")"),
                      event.status.ok() ? "" : ": ", event.status.message());
}

inline std::vector<std::string> Look(ModelRegistry& registry) {
  std::vector<std::string> lines;
  const absl::Status status =
      registry.FollowRepository([&](const RegistryEvent& event) { lines.push_back(Describe(event)); });
  EXPECT_TRUE(status.ok()) << status;
  return lines;
}

// Looks twice, because the registry acts on what it finds twice.
inline std::vector<std::string> Follow(ModelRegistry& registry) {
  std::vector<std::string> lines = Look(registry);
  for (std::string& line : Look(registry)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace longshort::core
