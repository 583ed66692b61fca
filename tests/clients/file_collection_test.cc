#include "clients/cpp/file_collection.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::file_collection_test {

using testing::ElementsAre;
using testing::HasSubstr;

//   b.JPG  a.png  notes.txt  .hidden.png
//   deep/c.webp  deep/.cache/d.png  deep/er/e.jpeg
class FileCollectionTest : public testing::Test {
 protected:
  FileCollectionTest() {
    for (const char* name :
         {"b.JPG", "a.png", "notes.txt", ".hidden.png", "deep/c.webp", "deep/.cache/d.png", "deep/er/e.jpeg"}) {
      folder_.Write(name, "bytes");
    }
  }

  absl::StatusOr<std::vector<std::string>> Collect(const std::vector<std::string>& arguments) {
    return CollectFiles(arguments, IsImageName);
  }

  TemporaryFolder folder_;
};

TEST_F(FileCollectionTest, AFolderIsTheWantedFilesBelowItByName) {
  const auto files = Collect({folder_.path().string()});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files,
              ElementsAre(folder_ / "a.png", folder_ / "b.JPG", folder_ / "deep/c.webp", folder_ / "deep/er/e.jpeg"));
}

TEST_F(FileCollectionTest, NamedFilesAreTakenWhateverTheirExtensionInTheOrderOfTheCommandLine) {
  const auto files = Collect({folder_ / "notes.txt", "-", folder_ / "a.png", folder_ / "a.png"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(folder_ / "notes.txt", "-", folder_ / "a.png", folder_ / "a.png"));
}

TEST_F(FileCollectionTest, APatternIsWhatItMatchesAndFoldersAmongThatAreEntered) {
  const auto letters = Collect({folder_ / "[ab].*"});
  ASSERT_TRUE(letters.ok()) << letters.status();
  EXPECT_THAT(*letters, ElementsAre(folder_ / "a.png", folder_ / "b.JPG"));
  const auto folders = Collect({folder_ / "d?ep"});
  ASSERT_TRUE(folders.ok()) << folders.status();
  EXPECT_THAT(*folders, ElementsAre(folder_ / "deep/c.webp", folder_ / "deep/er/e.jpeg"));
}

TEST_F(FileCollectionTest, AFileWhoseNameLooksLikeAPatternIsItself) {
  folder_.Write("what?.png", "bytes");
  folder_.Write("whatX.png", "bytes");
  const auto files = Collect({folder_ / "what?.png"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(folder_ / "what?.png"));
}

TEST_F(FileCollectionTest, LinksToFoldersAreNotEnteredSoThatLoopsEnd) {
  std::filesystem::create_directory_symlink(folder_.path(), folder_.path() / "deep/er/loop");
  std::filesystem::create_symlink(folder_.path() / "a.png", folder_.path() / "deep/link.png");
  const auto files = Collect({folder_ / "deep"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(folder_ / "deep/c.webp", folder_ / "deep/er/e.jpeg", folder_ / "deep/link.png"));
}

TEST_F(FileCollectionTest, WhatStandsForNoFileIsAnErrorThatNamesIt) {
  std::filesystem::create_directory(folder_.path() / "empty");
  for (const char* name : {"missing.png", "*.gif", "empty"}) {
    const auto files = Collect({folder_ / "a.png", folder_ / name});
    EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(files.status().message(), HasSubstr(folder_ / name));
  }
}

TEST_F(FileCollectionTest, AMissingFileMayStayButAPatternWithoutAMatchMayNot) {
  const std::vector<std::string> names = {folder_ / "a.png", folder_ / "missing.png"};
  const auto files = CollectFiles(names, IsImageName, MissingFile::kStays);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(*files, names);
  const std::vector<std::string> pattern = {folder_ / "*.gif"};
  EXPECT_EQ(CollectFiles(pattern, IsImageName, MissingFile::kStays).status().code(), absl::StatusCode::kNotFound);
}

TEST(ImageName, IsRecognisedByTheExtensionInAnyCase) {
  for (const char* name : {"a.jpg", "a.JPEG", "folder.x/a.Png", "a.webp", "a.b.JPG"}) {
    EXPECT_TRUE(IsImageName(name)) << name;
  }
  for (const char* name : {"a.txt", "a.tif", "a.bmp", "jpg", "a.jpg.txt", ".png", "a.png/b"})
    EXPECT_FALSE(IsImageName(name)) << name;
}

}  // namespace longshort::client::file_collection_test
