#include "core/registry/model_registry.h"

#include <filesystem>
#include <fstream>

#include "core/engine/language_model_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/status_macros.h"
#include "tests/core/fakes/fake_language_model.h"

namespace longshort {
namespace {

namespace fs = std::filesystem;

class ModelRegistryTest : public testing::Test {
 protected:
  ModelRegistryTest()
      : repository_(fs::path(testing::TempDir()) /
                    ("repository_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(repository_);
    fs::create_directories(repository_);
  }
  ~ModelRegistryTest() override { fs::remove_all(repository_); }

  absl::StatusOr<std::unique_ptr<ModelRegistry>> Load() {
    const auto loader = [this](const std::string& directory) -> absl::StatusOr<LoadedModel> {
      loaded_.push_back(fs::relative(directory, repository_).string());
      if (fs::exists(fs::path(directory) / "broken")) return absl::DataLossError("tensor x is missing");
      LoadedLanguageModel loaded;
      loaded.model = std::make_unique<FakeLanguageModel>();
      return loaded;
    };
    const auto factory = [this](const std::string&, int64_t, LoadedModel loaded) -> absl::StatusOr<ServedModel::Kind> {
      auto& language_model = std::get<LoadedLanguageModel>(loaded);
      ServedLanguageModel served{.info = language_model.model->info(), .tokenizer = nullptr, .engine = nullptr};
      LS_ASSIGN_OR_RETURN(served.engine,
                          LanguageModelEngine::Create(std::move(language_model.model), nullptr, nullptr, clock_, {}));
      return served;
    };
    return ModelRegistry::Load(repository_.string(), loader, factory);
  }

  void MakeFolder(const std::string& path) { fs::create_directories(repository_ / path); }
  void MakeFile(const std::string& path) { std::ofstream(repository_ / path) << "x"; }

  const fs::path repository_;
  RealClock clock_;
  std::vector<std::string> loaded_;
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
  MakeFile("bytes/serving.json");
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
  MakeFile("bytes/4/broken");
  EXPECT_EQ(Load().status(), absl::DataLossError("model bytes version 4: tensor x is missing"));
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

TEST_F(ModelRegistryTest, AnEmptyNameMeansTheOnlyModel) {
  MakeFolder("bytes/4");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  EXPECT_EQ((*(*registry)->Find("", 0))->name, "bytes");
  EXPECT_EQ((*registry)->Find("", 3).status().code(), absl::StatusCode::kNotFound);
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

}  // namespace
}  // namespace longshort
