// An engine that does what a test says, and a registry that serves it under the name "m".
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "core/registry/model_registry.h"
#include "core/requests/language_model_engine.h"

namespace longshort::server {

// Keeps what is submitted until the test asks for it. Thread-safe.
class ScriptedEngine final : public core::LanguageModelEngine {
 public:
  struct Generation {
    core::GenerationRequest request;
    std::shared_ptr<core::GenerationListener> listener;
  };
  struct Scoring {
    core::ScoringRequest request;
    std::shared_ptr<core::ScoringListener> listener;
  };

  // Submission number n (from 0) is answered with what this returns.
  std::function<absl::Status(int)> on_submit = [](int) { return absl::OkStatus(); };

  // What is exported, and what was imported, by "client/id". Not to be touched while calls are in flight.
  std::map<std::string, core::SessionArchive> archives;
  // Reports the end of an import.
  std::function<void(std::function<void()>)> notify_imported = [](const std::function<void()>& notify) { notify(); };
  core::SessionSize largest_session = {.tokens = 1000, .cache_bytes = int64_t{8} << 20};

  absl::Status Generate(core::GenerationRequest request, std::shared_ptr<core::GenerationListener> listener) override;
  absl::Status Score(core::ScoringRequest request, std::shared_ptr<core::ScoringListener> listener) override;
  core::SessionStore& sessions() override { return store_; }
  void ExportSession(const core::SessionKey& key,
                     std::function<void(absl::StatusOr<core::SessionArchive>)> done) override;
  void ImportSession(const core::SessionKey& key, core::SessionArchive archive,
                     std::function<void(absl::Status)> done) override;
  core::SessionSize LargestSession() const override { return largest_session; }
  core::LanguageModelEngineState state() const override { return {}; }
  void Drain(absl::Time) override {}

  // Waits until `count` have been accepted, and hands them over.
  std::vector<Generation> TakeGenerations(size_t count);
  std::vector<Scoring> TakeScorings(size_t count);

 private:
  const RealClock clock_;
  core::SessionStore store_{clock_, {}};
  std::mutex mutex_;
  std::condition_variable submitted_;
  int submissions_ = 0;
  std::vector<Generation> generations_;
  std::vector<Scoring> scorings_;
};

// A model with fairseq's byte vocabulary: byte b (but the newline, 2) has an id, and V = 260. Without engine.
std::shared_ptr<core::ServedLanguageModel> ByteModel();
// The same without vocabulary.
std::shared_ptr<core::ServedLanguageModel> IdModel();

// A registry of these models, each version 1.
std::unique_ptr<core::ModelRegistry> RegistryOf(std::map<std::string, core::ServedModel::Kind> models);
// A registry whose only model, "m" version 1, is a ByteModel run by `engine`.
std::unique_ptr<core::ModelRegistry> RegistryOf(std::unique_ptr<core::LanguageModelEngine> engine);

}  // namespace longshort::server
