#include "core/registry/model_registry.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/end_signal.h"
#include "tests/core/registry/registry_fixture.h"

namespace longshort::core::model_registry_test {

namespace fs = std::filesystem;

// Keeps something as long as the engine keeps the listener.
class SignallingListener final : public ScoringListener {
 public:
  explicit SignallingListener(EndSignal& ended) : ended_(ended) {}
  void OnFinished(absl::StatusOr<Score> score) override {
    EXPECT_TRUE(score.ok()) << score.status();
    ended_.Notify();
  }

  std::shared_ptr<ServedModel> keep;

 private:
  EndSignal& ended_;
};

TEST_F(ModelRegistryTest, LoadsTheNewestVersionOfEveryModel) {
  MakeFolder("bytes/1");
  MakeFolder("bytes/9");
  MakeFolder("bytes/10");
  MakeFolder("characters/3");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok()) << registry.status();
  EXPECT_THAT(loaded_, testing::ElementsAre("bytes/10", "characters/3"));
  const auto list = (*registry)->List();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]->name, "bytes");
  EXPECT_EQ(list[0]->version, 10);
  ASSERT_NE(list[0]->language_model(), nullptr);
  EXPECT_EQ(list[0]->language_model()->info.vocabulary_size, 16);
  EXPECT_NE(list[0]->language_model()->engine, nullptr);
  EXPECT_EQ(list[0]->classifier(), nullptr);
  EXPECT_EQ(list[1]->name, "characters");
}

TEST_F(ModelRegistryTest, IgnoresHiddenFoldersFilesAndFoldersThatAreNoVersions) {
  MakeFolder(".git/1");
  MakeFolder("bytes/2");
  for (const char* name : {"0", "-1", "03", "4.0", "latest", "99999999999999999999", ".5", "+6"}) {
    MakeFolder(std::string("bytes/") + name);
  }
  MakeFile("README.md");
  MakeFile("bytes/7");
  MakeFile("bytes/serving.json.old");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok()) << registry.status();
  EXPECT_THAT(loaded_, testing::ElementsAre("bytes/2"));
}

TEST_F(ModelRegistryTest, AnEmptyRepositoryIsNotFound) {
  EXPECT_EQ(Load().status(), absl::NotFoundError("there is no model in " + repository_.string()));
}

TEST_F(ModelRegistryTest, ARepositoryThatDoesNotExistIsNotFoundByName) {
  fs::remove_all(repository_);
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(repository_.string()));
}

TEST_F(ModelRegistryTest, SkipsFoldersThatAreNoModelsAndSaysWhy) {
  MakeFolder("bytes/1");
  MakeFolder("lost+found");
  MakeFolder("latin-\xe9/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok()) << registry.status();
  EXPECT_THAT(loaded_, testing::ElementsAre("bytes/1"));
  EXPECT_THAT((*registry)->skipped(),
              testing::ElementsAre(testing::HasSubstr("not UTF-8"),
                                   (repository_ / "lost+found").string() + ": no folder named 1, 2, ..."));
}

TEST_F(ModelRegistryTest, ARepositoryOfSkippedFoldersSaysWhyThereIsNoModel) {
  MakeFolder("empty");
  const absl::Status status = Load().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr((repository_ / "empty").string()));
}

TEST_F(ModelRegistryTest, AVersionThatDoesNotLoadIsNamed) {
  MakeFolder("bytes/4");
  MakeFile("bytes/4/model.safetensors.broken");
  EXPECT_EQ(Load().status(), absl::DataLossError("model bytes version 4: tensor x is missing"));
}

TEST_F(ModelRegistryTest, AModelThatCannotBeLoadedKeepsNoOtherFromServing) {
  for (const char* folder : {"bytes/1", "characters/1", "pairs/1", "pairs/2", "words/1"}) MakeFolder(folder);
  for (const char* folder : {"bytes/1", "pairs/2"}) MakeFile(absl::StrCat(folder, "/model.safetensors.broken"));
  WriteServing("words", "nonsense");
  EXPECT_EQ(Load(/*strict=*/true).status(), absl::DataLossError("model bytes version 1: tensor x is missing"));
  const auto registry = Load(/*strict=*/false);
  ASSERT_TRUE(registry.ok()) << registry.status();
  EXPECT_THAT(Names(**registry), testing::ElementsAre("characters/1", "pairs/1")) << "the next lower version serves";
  std::vector<std::string> failures;
  for (const auto& [id, status] : (*registry)->failures()) failures.emplace_back(status.message());
  EXPECT_THAT(failures, testing::ElementsAre("model bytes version 1: tensor x is missing",
                                             "model pairs version 2: tensor x is missing",
                                             "model words: serving.json is broken"));
  EXPECT_EQ(
      (*registry)->Find("bytes", 0).status(),
      absl::NotFoundError("not served, because it could not be loaded: model bytes version 1: tensor x is missing"));
  EXPECT_EQ(
      (*registry)->Find("pairs", 2).status(),
      absl::NotFoundError("not served, because it could not be loaded: model pairs version 2: tensor x is missing"));
  EXPECT_EQ((*registry)->Find("pairs", 3).status(), absl::NotFoundError("model pairs has no version 3; there are: 1"));

  loaded_.clear();
  EXPECT_TRUE(Follow(**registry).empty()) << "reported by Load's caller";
  EXPECT_TRUE(loaded_.empty()) << "the same files fail the same way";
  fs::remove(repository_ / "bytes/1/model.safetensors.broken");
  WriteServing("words", "all");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("loaded bytes/1", "loaded words/1"));
}

TEST_F(ModelRegistryTest, AStopWhileModelsAreLoadedIsNoFailureOfAModel) {
  MakeFolder("bytes/1");
  MakeFolder("characters/1");
  on_load_ = [this] { stopping_ = loaded_.size() > 1; };
  EXPECT_EQ(Load(/*strict=*/false).status(),
            absl::CancelledError("model characters version 1: nothing is loaded any more"));
  EXPECT_THAT(loaded_, testing::ElementsAre("bytes/1", "characters/1"));
}

TEST_F(ModelRegistryTest, FindsByNameAndVersion) {
  MakeFolder("bytes/4");
  MakeFolder("characters/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  EXPECT_EQ((*(*registry)->Find("bytes", 0))->version, 4);
  EXPECT_EQ((*(*registry)->Find("bytes", 4))->version, 4);
  EXPECT_EQ((*registry)->Find("bytes", 5).status(), absl::NotFoundError("model bytes has no version 5; there are: 4"));
  EXPECT_EQ((*registry)->Find("bites", 0).status(),
            absl::NotFoundError("there is no model bites; there are: bytes, characters"));
  EXPECT_EQ((*registry)->Find("", 0).status(),
            absl::InvalidArgumentError("a model must be named; there are: bytes, characters"));
}

// gRPC delivers no message of more than some thousand bytes.
TEST_F(ModelRegistryTest, OfManyModelsAndVersionsTheFirstAreNamed) {
  for (int i = 1; i <= 22; ++i) MakeFolder(absl::StrCat("bytes/", i));
  for (int i = 11; i <= 31; ++i) MakeFolder(absl::StrCat("model-", i, "/1"));
  WriteServing("bytes", "all");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  const char* versions = "there are: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and 2 more";
  EXPECT_EQ((*registry)->Find("bytes", 23).status(),
            absl::NotFoundError(absl::StrCat("model bytes has no version 23; ", versions)));
  EXPECT_EQ((*registry)->LoadVersion("bytes", 23).status(),
            absl::NotFoundError(absl::StrCat("the repository has no version 23 of model bytes; ", versions)));
  for (const char* name : {"", "bites"}) {
    EXPECT_THAT(std::string((*registry)->Find(name, 0).status().message()),
                testing::AllOf(testing::HasSubstr("there are: bytes, model-11, model-12"),
                               testing::EndsWith(", model-29 and 2 more")));
  }
}

TEST_F(ModelRegistryTest, AnEmptyNameMeansTheOnlyModel) {
  MakeFolder("bytes/4");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  EXPECT_EQ((*(*registry)->Find("", 0))->name, "bytes");
  EXPECT_EQ((*registry)->Find("", 3).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ModelRegistryTest, ANewVersionReplacesTheOldOneWhichFinishesItsRequests) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  std::shared_ptr<ServedModel> in_use = *(*registry)->Find("bytes", 0);
  MakeFolder("bytes/2");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("loaded bytes/2", "unloaded bytes/1"));
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/2"));

  EndSignal ended;
  ScoringRequest request;
  request.tokens = {1, 2, 3};
  auto listener = std::make_shared<SignallingListener>(ended);
  ASSERT_TRUE(in_use->language_model()->engine->Score(request, std::move(listener)).ok());
  EXPECT_TRUE(ended.Wait());
  std::weak_ptr<ServedModel> gone = in_use;
  in_use.reset();
  EXPECT_TRUE(gone.expired());
  EXPECT_TRUE(Follow(**registry).empty()) << "nothing has changed since";
}

// The engine's thread releases the model last, which must not destroy the engine from its own thread.
TEST_F(ModelRegistryTest, TheLastRequestMayBeTheLastToHaveTheModel) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  std::shared_ptr<ServedModel> in_use = *(*registry)->Find("bytes", 0);
  const LanguageModelEngine& engine = *in_use->language_model()->engine;
  EndSignal ended;
  auto listener = std::make_shared<SignallingListener>(ended);
  listener->keep = in_use;
  ScoringRequest request;
  request.tokens = {1, 2, 3};
  ASSERT_TRUE(in_use->language_model()->engine->Score(request, std::move(listener)).ok());
  EXPECT_EQ(&engine, in_use->language_model()->engine.get());
  in_use.reset();
  ASSERT_TRUE((*registry)->Unload("bytes", 0).ok());
  EXPECT_TRUE(ended.Wait());
  EXPECT_EQ((*registry)->Find("bytes", 0).status(), absl::NotFoundError("no model is loaded"));
  (*registry)->Drain(absl::InfiniteFuture());  // the listener was notified, but may not have released the model yet
}

TEST_F(ModelRegistryTest, AVersionThatFailsLeavesTheOldOneServingAndIsTriedAgainOnceChanged) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFolder("bytes/2");
  MakeFile("bytes/2/model.safetensors.broken");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("failed bytes/2: model bytes version 2: tensor x is missing"));
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
  EXPECT_TRUE(Follow(**registry).empty()) << "the same files fail the same way";
  const auto failures = (*registry)->failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures.at({"bytes", 2}).message(), "model bytes version 2: tensor x is missing");
  fs::remove(repository_ / "bytes/2/model.safetensors.broken");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("loaded bytes/2", "unloaded bytes/1"));
  EXPECT_TRUE((*registry)->failures().empty());
}

TEST_F(ModelRegistryTest, ClientsSeeFilesByTheirNamesInTheRepository) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  const auto seen = [&](const std::string& before, const std::string& after) {
    return (*registry)->WithoutPath(absl::NotFoundError(before + repository_.string() + after));
  };
  EXPECT_EQ(seen("model m version 2: ", "/m/2/x: damaged"), absl::NotFoundError("model m version 2: m/2/x: damaged"));
  EXPECT_EQ(seen("cannot read the folder ", ": away"),
            absl::NotFoundError("cannot read the folder of the repository: away"));
}

TEST_F(ModelRegistryTest, AVersionThatCannotBeReadJustNowIsTriedAgainAndReportedOnce) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFolder("bytes/2");
  disk_is_away_ = true;
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("failed bytes/2: model bytes version 2: cannot read"));
  EXPECT_TRUE(Follow(**registry).empty());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
  disk_is_away_ = false;
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("loaded bytes/2", "unloaded bytes/1"));
}

TEST_F(ModelRegistryTest, EachEventIsReportedBeforeTheNextModelIsLoaded) {
  MakeFolder("bytes/1");
  MakeFolder("characters/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFolder("bytes/2");
  MakeFolder("characters/2");
  loaded_.clear();
  const auto record = [&](const RegistryEvent& event) {
    loaded_.push_back(Describe(event));
    const bool found = (*registry)->Find(event.model, event.version).ok();
    EXPECT_EQ(found, event.kind == RegistryEvent::Kind::kLoaded);
  };
  for (int look = 0; look < 2; ++look) ASSERT_TRUE((*registry)->FollowRepository(record).ok());
  EXPECT_THAT(loaded_, testing::ElementsAre("bytes/2", "loaded bytes/2", "unloaded bytes/1",  //
                                            "characters/2", "loaded characters/2", "unloaded characters/1"));
}

TEST_F(ModelRegistryTest, AVersionThatIsNotLoadedForTheStopIsNoFailure) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFolder("bytes/2");
  stopping_ = true;
  EXPECT_THAT(Follow(**registry), testing::ElementsAre(testing::StartsWith("stopped bytes/2")));
  EXPECT_TRUE((*registry)->failures().empty());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
}

TEST_F(ModelRegistryTest, FollowsRemovedAndAddedVersions) {
  MakeFolder("bytes/1");
  MakeFolder("bytes/2");
  MakeFolder("characters/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  fs::remove_all(repository_ / "bytes/2");
  fs::remove_all(repository_ / "characters");
  MakeFolder("new/7");
  EXPECT_THAT(Follow(**registry),
              testing::ElementsAre("loaded bytes/1", "unloaded bytes/2", "unloaded characters/1", "loaded new/7"));
  fs::remove_all(repository_);
  EXPECT_FALSE((*registry)->FollowRepository([](const RegistryEvent&) {}).ok());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1", "new/7"))
      << "an unreadable repository changes nothing";
}

// What an unmounted volume leaves behind.
TEST_F(ModelRegistryTest, ARepositoryThatBecomesEmptyChangesNothing) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  fs::remove_all(repository_ / "bytes");
  MakeFolder("lost+found");
  const absl::Status status = (*registry)->FollowRepository([](const RegistryEvent&) { FAIL(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("there is no model in " + repository_.string()));
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
  MakeFolder("bytes/2");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre(testing::StartsWith("skipped /0: "), "loaded bytes/2",  //
                                                       "unloaded bytes/1"));
}

TEST_F(ModelRegistryTest, FoldersThatAreSkippedLaterAreReportedOnce) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFolder("nested/bytes/1");
  fs::create_symlink("/nowhere", repository_ / "away");
  fs::create_symlink("/nowhere", repository_ / "bytes/2");
  const auto path = [this](const char* name) { return "skipped /0: " + (repository_ / name).string(); };
  EXPECT_THAT(Follow(**registry), testing::ElementsAre(path("away") + ": a dangling symbolic link",
                                                       path("bytes/2") + ": a dangling symbolic link",
                                                       path("nested") + ": no folder named 1, 2, ..."));
  EXPECT_TRUE(Follow(**registry).empty());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
}

// A link to itself cannot be read, not even by root.
TEST_F(ModelRegistryTest, AModelWhoseFolderCannotBeReadStaysServedAndIsReportedOnce) {
  MakeFolder("bytes/1");
  MakeFolder("characters/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  fs::rename(repository_ / "bytes", repository_ / ".bytes");
  fs::create_symlink("bytes", repository_ / "bytes");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre(testing::StartsWith("failed bytes/0: cannot read the folder ")));
  EXPECT_TRUE(Follow(**registry).empty());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1", "characters/1"));
  EXPECT_TRUE(absl::IsUnavailable((*registry)->LoadVersion("bytes", 1).status()));

  fs::remove(repository_ / "bytes");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("unloaded bytes/1")) << "known to be gone";
}

TEST_F(ModelRegistryTest, NoOtherVersionTakesThePlaceOfOneThatCannotBeRead) {
  MakeFolder("bytes/1");
  MakeFolder("bytes/2");
  MakeFolder("characters/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  fs::remove(repository_ / "bytes/2");
  fs::create_symlink("2", repository_ / "bytes/2");
  MakeFolder("characters/2");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre(testing::StartsWith("failed bytes/0: cannot read the folder "),
                                                       "loaded characters/2", "unloaded characters/1"));
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/2", "characters/2"));
  fs::remove(repository_ / "bytes/2");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("loaded bytes/1", "unloaded bytes/2"));
}

TEST_F(ModelRegistryTest, WhatCannotBeReadAndIsNoVersionIsNothing) {
  MakeFolder("bytes/1");
  fs::create_symlink("notes", repository_ / "bytes/notes");
  fs::create_symlink("nowhere", repository_ / "bytes/later");
  fs::create_symlink("nowhere", repository_ / "bytes/2");
  fs::create_symlink("notes", repository_ / "notes");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
  EXPECT_THAT((*registry)->skipped(),
              testing::UnorderedElementsAre(testing::HasSubstr((repository_ / "notes").string()),
                                            (repository_ / "bytes/2").string() + ": a dangling symbolic link"));
  EXPECT_TRUE(Follow(**registry).empty()) << "it was reported when the repository was loaded";
}

TEST_F(ModelRegistryTest, LoadsAndUnloadsOnRequest) {
  MakeFolder("bytes/1");
  MakeFolder("bytes/2");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  ASSERT_TRUE((*registry)->LoadVersion("bytes", 1).ok());
  EXPECT_TRUE((*registry)->LoadVersion("bytes", 1).ok()) << "it is there";
  EXPECT_THAT(loaded_, testing::ElementsAre("bytes/2", "bytes/1"));
  EXPECT_TRUE(Follow(**registry).empty()) << "what was asked for stays";
  EXPECT_EQ((*registry)->LoadVersion("bytes", 3).status(),
            absl::NotFoundError("the repository has no version 3 of model bytes; there are: 1, 2"));
  EXPECT_EQ((*registry)->LoadVersion("bites", 0).status(), absl::NotFoundError("the repository has no model bites"));

  ASSERT_TRUE((*registry)->Unload("bytes", 2).ok());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
  EXPECT_TRUE(Follow(**registry).empty()) << "an unloaded version stays unloaded";
  EXPECT_TRUE(absl::IsNotFound((*registry)->Unload("bytes", 2)));
  ASSERT_TRUE((*registry)->Unload("bytes", 0).ok());
  EXPECT_TRUE((*registry)->List().empty());
  ASSERT_TRUE((*registry)->LoadVersion("bytes", 0).ok());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/2"));
}

TEST_F(ModelRegistryTest, AVersionThatAClientCannotLoadIsAFailureUntilItLoads) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFolder("characters/1");
  MakeFile("characters/1/model.safetensors.broken");
  std::vector<std::string> reports;
  const auto record = [&](const RegistryEvent& event) { reports.push_back(Describe(event)); };
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_TRUE(absl::IsDataLoss((*registry)->LoadVersion("characters", 1, record).status()));
  }
  EXPECT_EQ(reports.size(), 2u) << "each attempt is reported";
  auto failures = (*registry)->failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures.at({"characters", 1}).message(), "model characters version 1: tensor x is missing");
  EXPECT_TRUE(Follow(**registry).empty()) << "the same files fail the same way";
  fs::remove(repository_ / "characters/1/model.safetensors.broken");
  ASSERT_TRUE((*registry)->LoadVersion("characters", 1).ok());
  EXPECT_TRUE((*registry)->failures().empty());
}

TEST_F(ModelRegistryTest, WhatDidNotFitIsForgottenOnceItWasLoaded) {
  MakeFolder("bytes/1");
  MakeFolder("characters/1");
  on_load_ = [this] { full_ = loaded_.size() > 1; };
  const auto registry = Load(/*strict=*/false);
  ASSERT_TRUE(registry.ok()) << registry.status();
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
  auto failures = (*registry)->failures();
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures.at({"characters", 1}).message(), "model characters version 1: it does not fit");
  EXPECT_TRUE(Follow(**registry).empty()) << "reported by Load's caller";
  on_load_ = [this] { full_ = false; };
  ASSERT_TRUE((*registry)->LoadVersion("characters", 1).ok());
  ASSERT_TRUE((*registry)->Unload("characters", 1).ok());
  EXPECT_TRUE((*registry)->failures().empty());
}

TEST_F(ModelRegistryTest, AnUnloadedVersionIsNoFailureThoughItsReloadWas) {
  MakeFolder("bytes/1");
  WriteWeights("bytes/2", "old");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFile("bytes/2/model.safetensors.broken");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre(testing::StartsWith("failed bytes/2")));
  EXPECT_EQ((*registry)->failures().count({"bytes", 2}), 1u);
  ASSERT_TRUE((*registry)->Unload("bytes", 2).ok());
  EXPECT_TRUE((*registry)->failures().empty());
}

TEST_F(ModelRegistryTest, AReplacedVersionIsNoFailureThoughItsReloadWas) {
  WriteWeights("bytes/1", "old");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  MakeFile("bytes/1/model.safetensors.broken");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre(testing::StartsWith("failed bytes/1")));
  WriteWeights("bytes/2", "new");
  EXPECT_THAT(Follow(**registry), testing::Contains(testing::StartsWith("unloaded bytes/1")));
  EXPECT_TRUE((*registry)->failures().empty());
}

TEST_F(ModelRegistryTest, DrainsEveryEngine) {
  MakeFolder("bytes/1");
  MakeFolder("characters/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  (*registry)->Drain(absl::Now() + absl::Seconds(10));
  for (const auto& served : (*registry)->List()) {
    ScoringRequest request;
    request.tokens = {1};
    EXPECT_EQ(served->language_model()->engine->Score(request, nullptr).code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace longshort::core::model_registry_test
