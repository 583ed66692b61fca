#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/registry/model_registry.h"
#include "core/registry/model_repository.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core::version_policy_test {

namespace fs = std::filesystem;
using Versions = std::set<int64_t>;

TEST(VersionPolicy, ChoosesOfThoseThatThereAre) {
  EXPECT_EQ(VersionPolicy().Choose({1, 9, 10}), Versions{10});
  EXPECT_EQ((VersionPolicy{.latest = 2}.Choose({1, 9, 10})), (Versions{9, 10}));
  EXPECT_EQ((VersionPolicy{.latest = 5}.Choose({1, 9})), (Versions{1, 9}));
  EXPECT_EQ((VersionPolicy{.kind = VersionPolicy::Kind::kAll}.Choose({1, 9})), (Versions{1, 9}));
  const VersionPolicy specific = {.kind = VersionPolicy::Kind::kSpecific, .specific = {2, 9}};
  EXPECT_EQ(specific.Choose({1, 9, 10}), Versions{9});
  EXPECT_EQ(specific.Choose({1}), Versions());
}

// A repository of one model to which anything happens (and another, for an empty repository would not be followed), the
// registry that follows it, and beside it a plain account of which versions serve, and with which serving.json.
class FollowedRepository {
 public:
  explicit FollowedRepository(uint32_t seed)
      : random_(seed), repository_(fs::path(testing::TempDir()) / absl::StrCat("followed_", seed)) {
    fs::remove_all(repository_);
    AddVersion(1);
    fs::create_directories(repository_ / "other" / "1");
    registry_ = *ModelRegistry::Load(
        repository_.string(), LoadUnlessBroken,
        [this](const std::string&, int64_t version, const models::LoadedModel& loaded) {
          return MakeServed(version, loaded);
        },
        [this](const std::string&) { return policy_; });
    serving_[1] = Files(1);
  }
  ~FollowedRepository() { fs::remove_all(repository_); }

  void ChangeSomething() {
    const int64_t version = SomeVersion();
    switch (Draw(9)) {
      case 0:
      case 1:
        return AddVersion(version);
      case 2:
        return RemoveVersion(version);
      case 3:
        if (on_disk_.count(version) > 0 && broken_.insert(version).second)
          Write(Folder(version) / "model.safetensors.broken");
        return;
      case 4:
        if (broken_.erase(version) > 0) fs::remove(Folder(version) / "model.safetensors.broken");
        return;
      case 5:
        return ChangeServingFile();
      case 6:
        return LoadByClient(version);
      case 7:
        return ChangeVersion(version);
      default:
        return UnloadByClient(version);
    }
  }

  void Follow() {
    for (int look = 0; look < 2; ++look) {
      ASSERT_TRUE(registry_->FollowRepository([](const RegistryEvent&) {}).ok());
    }
    FollowInAccount();
    Compare();
    int again = 0;
    EXPECT_TRUE(registry_->FollowRepository([&](const RegistryEvent&) { ++again; }).ok());
    EXPECT_EQ(again, 0) << "nothing has changed since";
  }

  void Compare() const {
    std::map<int64_t, std::string> serving;
    for (const auto& served : registry_->List()) {
      if (served->name != "m") continue;
      serving[served->version] = served->fingerprint();
    }
    EXPECT_EQ(serving, serving_) << "on disk " << Text(on_disk_) << "; broken " << Text(broken_) << "; asked for "
                                 << Text(kept_) << "; unloaded " << Text(unwanted_);
  }

 private:
  static std::string Text(const Versions& versions) { return absl::StrJoin(versions, " "); }
  int64_t Draw(int64_t count) { return static_cast<int64_t>(random_() % count); }
  int64_t SomeVersion() { return 1 + Draw(6); }
  fs::path Folder(int64_t version) const { return repository_ / "m" / absl::StrCat(version); }

  // With a time of its own, however coarse the file system's clock is.
  void Write(const fs::path& file) {
    std::ofstream(file) << "x";
    fs::last_write_time(file, fs::file_time_type() + std::chrono::seconds(++writes_));
  }

  void AddVersion(int64_t version) {
    if (!on_disk_.insert(version).second) return;
    fs::create_directories(Folder(version));
    Write(Folder(version) / "config.json");
    content_[version] = writes_;
  }

  void ChangeVersion(int64_t version) {
    if (on_disk_.count(version) == 0) return;
    Write(Folder(version) / "config.json");
    content_[version] = writes_;
  }

  void RemoveVersion(int64_t version) {
    fs::remove_all(Folder(version));
    on_disk_.erase(version);
    broken_.erase(version);
  }

  void ChangeServingFile() {
    fs::create_directories(repository_ / "m");
    Write(repository_ / "m" / "serving.json");
    serving_file_ = writes_;
    switch (Draw(6)) {
      case 0:
        policy_ = absl::InvalidArgumentError("broken");
        break;
      case 1:
        policy_ = VersionPolicy{.kind = VersionPolicy::Kind::kAll};
        break;
      case 2:
      case 3:
        policy_ = VersionPolicy{.kind = VersionPolicy::Kind::kSpecific, .specific = {SomeVersion(), SomeVersion()}};
        break;
      default:
        policy_ = VersionPolicy{.latest = 1 + Draw(3)};
    }
  }

  void LoadByClient(int64_t version) {
    const bool can_load = on_disk_.count(version) > 0 && broken_.count(version) == 0;
    ASSERT_EQ(registry_->LoadVersion("m", version).ok(), can_load);
    if (!can_load) return;
    serving_[version] = Files(version);
    kept_.insert(version);
    unwanted_.erase(version);
  }

  void UnloadByClient(int64_t version) {
    const bool was_loaded = serving_.erase(version) > 0;
    ASSERT_EQ(registry_->Unload("m", version).ok(), was_loaded);
    if (!was_loaded) return;
    kept_.erase(version);
    unwanted_.insert(version);
  }

  static absl::StatusOr<models::LoadedModel> LoadUnlessBroken(const std::string& directory, const std::string&) {
    if (fs::exists(fs::path(directory) / "model.safetensors.broken")) return absl::DataLossError("broken");
    return models::LoadedModel(
        models::LoadedLanguageModel{.weights = WeightsOf(std::make_unique<FakeLanguageModel>()), .tokenizer = nullptr});
  }

  std::string Files(int64_t version) const { return absl::StrCat(content_.at(version), " with ", serving_file_); }

  absl::StatusOr<ServedModel::Kind> MakeServed(int64_t version, const models::LoadedModel& loaded) const {
    ServedLanguageModel served{
        .info = std::get<models::LoadedLanguageModel>(loaded).weights.info(), .tokenizer = nullptr, .engine = nullptr};
    served.info.fingerprint = Files(version);
    return served;
  }

  // What the registry's header says, with what is on disk known.
  void FollowInAccount() {
    Versions usable;
    for (const int64_t version : on_disk_) {
      if (serving_.count(version) + unwanted_.count(version) > 0 || broken_.count(version) == 0) usable.insert(version);
    }
    const Versions chosen = policy_.ok() ? policy_->Choose(usable) : Versions();
    std::map<int64_t, std::string> before = std::exchange(serving_, {});
    for (const int64_t version : on_disk_) {
      const auto served = before.find(version);
      const bool wanted = chosen.count(version) > 0 || (served != before.end() && kept_.count(version) > 0);
      const bool stays = served != before.end() && (wanted || chosen.empty());
      const bool loads = wanted && unwanted_.count(version) == 0 && broken_.count(version) == 0;
      if (stays) serving_[version] = served->second;
      if (loads) serving_[version] = Files(version);
    }
    for (const auto& [version, file] : before) {
      if (serving_.count(version) == 0) kept_.erase(version);
    }
  }

  std::mt19937 random_;
  const fs::path repository_;
  absl::StatusOr<VersionPolicy> policy_ = VersionPolicy();
  std::unique_ptr<ModelRegistry> registry_;
  int64_t writes_ = 0;
  int64_t serving_file_ = 0;  // which write it was; 0: there is none
  Versions on_disk_;
  Versions broken_;
  Versions kept_;                           // loaded by a client
  Versions unwanted_;                       // unloaded by one
  std::map<int64_t, int64_t> content_;      // versions, with the last write of their files
  std::map<int64_t, std::string> serving_;  // versions, with the Files of their loading
};

TEST(VersionPolicy, WhatServesIsAlwaysWhatThePolicyChoosesOfWhatCanBeLoaded) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    FollowedRepository followed(seed);
    for (int round = 0; round < 60 && !testing::Test::HasFailure(); ++round) {
      for (uint32_t change = 0; change <= seed % 4; ++change) followed.ChangeSomething();
      followed.Compare();
      followed.Follow();
    }
  }
}

}  // namespace longshort::core::version_policy_test
