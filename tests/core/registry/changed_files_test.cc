// A loaded version whose files change in the repository.

#include <chrono>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/registry/registry_fixture.h"

namespace longshort::core::changed_files_test {

namespace fs = std::filesystem;

class ChangedFilesTest : public ModelRegistryTest {
 protected:
  ChangedFilesTest() {
    WriteWeights("bytes/1", "old");
    registry_ = Load().value();
  }

  std::string Served() const { return (*registry_->Find("bytes", 1))->fingerprint(); }
  std::vector<std::string> Follow() { return core::Follow(*registry_); }

  std::unique_ptr<ModelRegistry> registry_;
};

TEST_F(ChangedFilesTest, ReplaceTheVersionOnceTheyAreFoundTwice) {
  const std::shared_ptr<ServedModel> before = *registry_->Find("bytes", 1);
  WriteWeights("bytes/1", "new!");
  EXPECT_THAT(Look(*registry_), testing::IsEmpty()) << "the writer may still be at work";
  EXPECT_EQ(*registry_->Find("bytes", 1), before);
  EXPECT_THAT(Look(*registry_), testing::ElementsAre("reloaded bytes/1 (the model's files)"));
  EXPECT_EQ(Served(), "weights new!");
  EXPECT_EQ(before->fingerprint(), "weights old") << "its requests finish on it";
  EXPECT_THAT(Follow(), testing::IsEmpty());
}

TEST_F(ChangedFilesTest, OfTheSameSizeAndTimeAreNoticed) {
  const fs::path file = repository_ / "bytes/1/model.safetensors";
  const auto time = fs::last_write_time(file);
  WriteWeights("bytes/1", "new");
  fs::last_write_time(file, time);
  EXPECT_THAT(Follow(), testing::ElementsAre("reloaded bytes/1 (the model's files)"));
  EXPECT_EQ(Served(), "weights new");
}

TEST_F(ChangedFilesTest, InAFolderThatIsMovedIntoPlaceAreNoticed) {
  MakeFolder("other/1");  // an empty repository would not be followed
  EXPECT_THAT(Follow(), testing::ElementsAre("loaded other/1"));
  WriteWeights(".incoming/1", "new");
  fs::rename(repository_ / "bytes/1", repository_ / ".old");
  EXPECT_THAT(Look(*registry_), testing::ElementsAre(testing::HasSubstr("no folder named 1, 2, ...")));
  EXPECT_EQ(Served(), "weights old") << "between the moves the version still serves";
  fs::rename(repository_ / ".incoming/1", repository_ / "bytes/1");
  EXPECT_THAT(Follow(), testing::ElementsAre("reloaded bytes/1 (the model's files)"));
  EXPECT_EQ(Served(), "weights new");
}

TEST_F(ChangedFilesTest, WithTheSameContentChangeNothing) {
  const std::shared_ptr<ServedModel> before = *registry_->Find("bytes", 1);
  fs::last_write_time(repository_ / "bytes/1/model.safetensors", fs::file_time_type() + std::chrono::hours(1));
  EXPECT_THAT(Follow(), testing::ElementsAre("unchanged bytes/1"));
  WriteWeights("bytes/1", "old");
  EXPECT_THAT(Follow(), testing::ElementsAre("unchanged bytes/1"));
  EXPECT_EQ(*registry_->Find("bytes", 1), before);
  EXPECT_THAT(Follow(), testing::IsEmpty());
}

TEST_F(ChangedFilesTest, ThatAreStillWrittenAreNotTaken) {
  WriteWeights("bytes/2", "n");
  for (const char* more : {"ne", "new", "new!"}) {
    EXPECT_THAT(Look(*registry_), testing::IsEmpty());
    WriteWeights("bytes/2", more);
  }
  MakeFile("bytes/2/.vocabulary.txt.Xa3f");  // as rsync does
  EXPECT_THAT(Look(*registry_), testing::IsEmpty());
  fs::rename(repository_ / "bytes/2/.vocabulary.txt.Xa3f", repository_ / "bytes/2/vocabulary.txt");
  MakeFile("bytes/2/train.log");
  EXPECT_THAT(Look(*registry_), testing::IsEmpty());
  std::ofstream(repository_ / "bytes/2/train.log") << "a file that the model does not read";
  EXPECT_THAT(Look(*registry_), testing::ElementsAre("loaded bytes/2", "unloaded bytes/1"));
}

TEST_F(ChangedFilesTest, ThatDoNotLoadLeaveTheVersionServing) {
  MakeFile("bytes/1/model.safetensors.broken");
  EXPECT_THAT(Follow(), testing::ElementsAre("failed bytes/1: model bytes version 1: tensor x is missing"));
  EXPECT_EQ(registry_->LoadVersion("bytes", 1).status(),
            absl::DataLossError("model bytes version 1: tensor x is missing"));
  EXPECT_EQ(Served(), "weights old");
  fs::remove(repository_ / "bytes/1/model.safetensors.broken");
  WriteWeights("bytes/1", "mended");
  EXPECT_THAT(Follow(), testing::ElementsAre("reloaded bytes/1 (the model's files)"));
}

TEST_F(ChangedFilesTest, AreReloadedByLoadVersionWhichSaysWhatItDid) {
  const auto load = [&] {
    const absl::StatusOr<LoadedVersion> loaded = registry_->LoadVersion("bytes", 0);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded->outcome;
  };
  EXPECT_EQ(load(), LoadOutcome::kUnchanged);
  WriteWeights("bytes/1", "new");
  EXPECT_EQ(load(), LoadOutcome::kReloaded);
  EXPECT_EQ(Served(), "weights new");
  WriteWeights("bytes/1", "new");
  EXPECT_EQ(load(), LoadOutcome::kUnchanged);
  WriteServing("bytes", "all");
  EXPECT_EQ(load(), LoadOutcome::kReloaded);
  WriteWeights("bytes/2", "newer");
  EXPECT_EQ(load(), LoadOutcome::kLoaded);
  EXPECT_THAT(Follow(), testing::IsEmpty());
}

TEST_F(ChangedFilesTest, DuringAReloadByAClientAreNotTaken) {
  WriteWeights("bytes/1", "new");
  on_load_ = [this] { WriteWeights("bytes/1", "newer"); };
  const absl::Status status = registry_->LoadVersion("bytes", 1).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("its files changed while they were read"));
  EXPECT_EQ(Served(), "weights old");
}

}  // namespace longshort::core::changed_files_test
