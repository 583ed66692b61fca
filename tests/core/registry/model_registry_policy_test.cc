// Which versions of a model are served, as its serving.json says.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/registry/registry_fixture.h"

namespace longshort::core::model_registry_policy_test {

namespace fs = std::filesystem;

TEST_F(ModelRegistryTest, LoadsTheVersionsThatThePolicyChooses) {
  for (const char* model : {"all", "specific", "two"}) {
    for (const char* version : {"1", "2", "3"}) MakeFolder(absl::StrCat(model, "/", version));
  }
  WriteServing("all", "all");
  WriteServing("specific", "specific 1 3 7");
  WriteServing("two", "latest 2");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok()) << registry.status();
  EXPECT_THAT(Names(**registry),
              testing::ElementsAre("all/1", "all/2", "all/3", "specific/1", "specific/3", "two/2", "two/3"));
  MakeFolder("all/4");
  MakeFolder("specific/7");
  MakeFolder("two/4");
  EXPECT_THAT(Follow(**registry),
              testing::ElementsAre("loaded all/4", "loaded specific/7", "loaded two/4", "unloaded two/2"));
}

TEST_F(ModelRegistryTest, APolicyThatCannotBeReadOrChoosesNothingIsAFailureOfItsModel) {
  MakeFolder("bytes/4");
  WriteServing("bytes", "nonsense");
  EXPECT_EQ(Load().status(), absl::InvalidArgumentError("model bytes: serving.json is broken"));
  WriteServing("bytes", "specific 3 5");
  EXPECT_EQ(Load().status(),
            absl::NotFoundError(absl::StrCat("model bytes: the repository has none of the versions that ",
                                             (repository_ / "bytes/serving.json").string(), " wants; there are: 4")));
}

TEST_F(ModelRegistryTest, AChangedServingFileReloadsItsModelInPlace) {
  MakeFolder("bytes/1");
  MakeFolder("bytes/2");
  MakeFolder("characters/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  ASSERT_TRUE((*registry)->LoadVersion("bytes", 1).ok());
  const std::shared_ptr<ServedModel> before = *(*registry)->Find("bytes", 2);
  WriteServing("bytes", "latest 1");
  EXPECT_THAT(Follow(**registry),
              testing::ElementsAre("reloaded bytes/2 (serving.json)", "reloaded bytes/1 (serving.json)"))
      << "what a client asked for too";
  EXPECT_NE(*(*registry)->Find("bytes", 2), before);
  EXPECT_TRUE(Follow(**registry).empty());
  fs::remove(repository_ / "bytes/serving.json");
  EXPECT_THAT(Follow(**registry),
              testing::ElementsAre("reloaded bytes/2 (serving.json)", "reloaded bytes/1 (serving.json)"));

  (*registry)->Drain(absl::Now() + absl::Seconds(10));
  ScoringRequest request;
  request.tokens = {1};
  EXPECT_EQ(before->language_model()->engine->Score(request, nullptr).code(), absl::StatusCode::kUnavailable)
      << "who still has the old one is drained too";
}

TEST_F(ModelRegistryTest, ABrokenServingFileChangesNothingAndIsReportedOnce) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  WriteServing("bytes", "nonsense");
  MakeFolder("bytes/2");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("failed bytes/0: model bytes: serving.json is broken"));
  EXPECT_TRUE(Follow(**registry).empty());
  EXPECT_THAT(Names(**registry), testing::ElementsAre("bytes/1"));
  WriteServing("bytes", "all");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("loaded bytes/2", "reloaded bytes/1 (serving.json)"));
}

TEST_F(ModelRegistryTest, AServingFileWithWhichAVersionDoesNotLoadLeavesItServingAsItWas) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  const std::shared_ptr<ServedModel> before = *(*registry)->Find("bytes", 1);
  MakeFile("bytes/1/model.safetensors.broken");
  WriteServing("bytes", "all");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("failed bytes/1: model bytes version 1: tensor x is missing"));
  EXPECT_TRUE(Follow(**registry).empty());
  EXPECT_EQ(*(*registry)->Find("bytes", 1), before);
  fs::remove(repository_ / "bytes/1/model.safetensors.broken");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("reloaded bytes/1 (serving.json)"));
}

TEST_F(ModelRegistryTest, WhereTheNewestDoNotLoadTheNextOnesServe) {
  MakeFolder("bytes/1");
  const auto registry = Load();
  ASSERT_TRUE(registry.ok());
  WriteServing("bytes", "latest 2");
  for (const char* version : {"2", "3", "4"}) MakeFolder(absl::StrCat("bytes/", version));
  MakeFile("bytes/4/model.safetensors.broken");
  EXPECT_THAT(Follow(**registry), testing::ElementsAre("failed bytes/4: model bytes version 4: tensor x is missing",
                                                       "loaded bytes/3", "loaded bytes/2", "unloaded bytes/1"));
}

}  // namespace longshort::core::model_registry_policy_test
