#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "clients/cpp/inputs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/temporary_folder.h"

namespace longshort::client::file_collection_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const std::string kLoop = " (a link to a folder above it)";

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

  absl::StatusOr<CollectedFiles> Collect(const std::vector<std::string>& arguments) {
    return CollectFiles(arguments, IsImageName);
  }

  TemporaryFolder folder_;
};

TEST_F(FileCollectionTest, AFolderIsTheWantedFilesBelowItByName) {
  const auto files = Collect({folder_.path().string()});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->names,
              ElementsAre(folder_ / "a.png", folder_ / "b.JPG", folder_ / "deep/c.webp", folder_ / "deep/er/e.jpeg"));
}

TEST_F(FileCollectionTest, NamedFilesAreTakenWhateverTheirExtensionInTheOrderOfTheCommandLine) {
  const auto files = Collect({folder_ / "notes.txt", "-", folder_ / "a.png", folder_ / "a.png"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->names, ElementsAre(folder_ / "notes.txt", "-", folder_ / "a.png", folder_ / "a.png"));
}

TEST_F(FileCollectionTest, APatternIsWhatItMatchesAndFoldersAmongThatAreEntered) {
  const auto letters = Collect({folder_ / "[ab].*"});
  ASSERT_TRUE(letters.ok()) << letters.status();
  EXPECT_THAT(letters->names, ElementsAre(folder_ / "a.png", folder_ / "b.JPG"));
  const auto folders = Collect({folder_ / "d?ep"});
  ASSERT_TRUE(folders.ok()) << folders.status();
  EXPECT_THAT(folders->names, ElementsAre(folder_ / "deep/c.webp", folder_ / "deep/er/e.jpeg"));
}

TEST_F(FileCollectionTest, AFileWhoseNameLooksLikeAPatternIsItself) {
  folder_.Write("what?.png", "bytes");
  folder_.Write("whatX.png", "bytes");
  const auto files = Collect({folder_ / "what?.png"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->names, ElementsAre(folder_ / "what?.png"));
}

TEST_F(FileCollectionTest, WhatIsNotReadInAFolderIsCounted) {
  for (const char* name : {"x.gif", "deep/Y.GIF", "z.heic", "README", ".gitignore"}) folder_.Write(name, "bytes");
  ASSERT_EQ(mkfifo((folder_ / "deep/pipe.png").c_str(), 0600), 0);
  std::filesystem::create_symlink("nowhere", folder_.path() / "gone.png");
  const auto files = Collect({folder_.path().string(), folder_ / "x.gif"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->names.size(), 5);
  EXPECT_THAT(files->left_out,
              ElementsAre(Pair("*.gif", 2), Pair("*.heic", 1), Pair("*.png", 2), Pair("*.txt", 1), Pair(".*.png", 1),
                          Pair(".cache/", 1), Pair(".gitignore", 1), Pair("README", 1)));
}

TEST_F(FileCollectionTest, LinksToFoldersAreFollowedAndLoopsAreCounted) {
  std::filesystem::create_directory_symlink(folder_.path() / "deep", folder_.path() / "deep/er/loop");
  std::filesystem::create_directory_symlink(folder_.path() / "deep/er", folder_.path() / "deep/more");
  std::filesystem::create_symlink(folder_.path() / "a.png", folder_.path() / "deep/link.png");
  const auto files = Collect({folder_ / "deep"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->names, ElementsAre(folder_ / "deep/c.webp", folder_ / "deep/er/e.jpeg", folder_ / "deep/link.png",
                                        folder_ / "deep/more/e.jpeg"));
  EXPECT_THAT(files->left_out, ElementsAre(Pair(".cache/", 1), Pair(folder_ / "deep/er/loop" + kLoop, 1),
                                           Pair(folder_ / "deep/more/loop" + kLoop, 1)));
}

TEST_F(FileCollectionTest, AFolderThatCannotBeReadIsAnError) {
  std::filesystem::permissions(folder_.path() / "deep/er", std::filesystem::perms::none);
  const bool is_root = geteuid() == 0;  // root reads all folders
  ASSERT_EQ(seteuid(is_root ? 65534 : geteuid()), 0);
  const absl::Cleanup restore = [this, is_root] {
    ASSERT_EQ(seteuid(is_root ? 0 : geteuid()), 0);
    std::filesystem::permissions(folder_.path() / "deep/er", std::filesystem::perms::owner_all);
  };
  for (const std::string& name : {folder_.path().string(), folder_ / "deep/*/*.jpeg"}) {
    const auto files = Collect({name});
    EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound) << name;
  }
}

TEST_F(FileCollectionTest, WhatStandsForNoFileIsAnErrorThatNamesIt) {
  std::filesystem::create_directory(folder_.path() / "empty");
  for (const char* name : {"missing.png", "*.gif", "empty"}) {
    const auto files = Collect({folder_ / "a.png", folder_ / name});
    EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(files.status().message(), HasSubstr(folder_ / name));
  }
  folder_.Write("empty/x.gif", "bytes");
  EXPECT_THAT(Collect({folder_ / "empty"}).status().message(),
              HasSubstr("no file of the right kind; not read: 1 *.gif"));
}

TEST_F(FileCollectionTest, AMissingFileMayStayButAPatternWithoutAMatchMayNot) {
  const std::vector<std::string> names = {folder_ / "a.png", folder_ / "missing.png"};
  const auto files = CollectFiles(names, IsImageName, MissingFile::kStays);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->names, names);
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
