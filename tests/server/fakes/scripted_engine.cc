#include "tests/server/fakes/scripted_engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::server {
namespace {

constexpr int64_t kVocabularySize = 260;

models::LanguageModelInfo ScriptedModelInfo() {
  models::LanguageModelInfo info;
  info.vocabulary_size = kVocabularySize;
  info.precision = "fp32";
  info.fingerprint = "f00d";
  return info;
}

std::shared_ptr<const models::Tokenizer> ByteTokenizer() {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != '\n') absl::StrAppend(&vocabulary, byte, " 1\n");
  }
  return *models::LoadFairseqTokenizer(models::Tokenizer::Unit::kByte, vocabulary, "vocabulary.txt", kVocabularySize);
}

}  // namespace

absl::Status ScriptedEngine::Generate(core::GenerationRequest request,
                                      std::shared_ptr<core::GenerationListener> listener) {
  const std::lock_guard lock(mutex_);
  absl::Status status = on_submit(submissions_++);
  if (status.ok()) generations_.push_back({std::move(request), std::move(listener)});
  submitted_.notify_all();
  return status;
}

absl::Status ScriptedEngine::Score(core::ScoringRequest request, std::shared_ptr<core::ScoringListener> listener) {
  const std::lock_guard lock(mutex_);
  absl::Status status = on_submit(submissions_++);
  if (status.ok()) scorings_.push_back({std::move(request), std::move(listener)});
  submitted_.notify_all();
  return status;
}

void ScriptedEngine::ExportSession(const core::SessionKey& key,
                                   std::function<void(absl::StatusOr<core::SessionArchive>)> done) {
  std::unique_lock lock(mutex_);
  const auto found = archives.find(absl::StrCat(key.client, "/", key.id));
  absl::StatusOr<core::SessionArchive> archive = absl::NotFoundError("there is no such session");
  if (found != archives.end()) archive = found->second;
  lock.unlock();
  done(std::move(archive));
}

void ScriptedEngine::ImportSession(const core::SessionKey& key, core::SessionArchive archive,
                                   std::function<void(absl::Status)> done) {
  std::unique_lock lock(mutex_);
  const bool is_new = archives.emplace(absl::StrCat(key.client, "/", key.id), std::move(archive)).second;
  lock.unlock();
  notify_imported([done = std::move(done), is_new] {
    done(is_new ? absl::OkStatus() : absl::AlreadyExistsError("there is such a session"));
  });
}

std::vector<ScriptedEngine::Generation> ScriptedEngine::TakeGenerations(size_t count) {
  std::unique_lock lock(mutex_);
  submitted_.wait(lock, [&] { return generations_.size() >= count; });
  return std::exchange(generations_, {});
}

std::vector<ScriptedEngine::Scoring> ScriptedEngine::TakeScorings(size_t count) {
  std::unique_lock lock(mutex_);
  submitted_.wait(lock, [&] { return scorings_.size() >= count; });
  return std::exchange(scorings_, {});
}

std::shared_ptr<core::ServedLanguageModel> ByteModel() {
  auto model = std::make_shared<core::ServedLanguageModel>();
  model->info = ScriptedModelInfo();
  model->tokenizer = ByteTokenizer();
  return model;
}

std::shared_ptr<core::ServedLanguageModel> IdModel() {
  auto model = ByteModel();
  model->tokenizer = nullptr;
  return model;
}

std::unique_ptr<core::ModelRegistry> RegistryOf(std::map<std::string, core::ServedModel::Kind> models) {
  const std::filesystem::path repository =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("scripted_", getpid());
  std::filesystem::remove_all(repository);
  for (const auto& [name, kind] : models) std::filesystem::create_directories(repository / name / "1");
  const auto load = [](const std::string&, const std::string&) -> absl::StatusOr<models::LoadedModel> {
    return models::LoadedModel();
  };
  const auto make_engine = [&](const std::string& name, int64_t,
                               models::LoadedModel) -> absl::StatusOr<core::ServedModel::Kind> {
    return std::move(models.at(name));
  };
  auto registry = *core::ModelRegistry::Load(repository.string(), load, make_engine);
  std::filesystem::remove_all(repository);
  return registry;
}

std::unique_ptr<core::ModelRegistry> RegistryOf(std::unique_ptr<core::LanguageModelEngine> engine) {
  std::map<std::string, core::ServedModel::Kind> models;
  models["m"] =
      core::ServedLanguageModel{.info = ScriptedModelInfo(), .tokenizer = ByteTokenizer(), .engine = std::move(engine)};
  return RegistryOf(std::move(models));
}

}  // namespace longshort::server
