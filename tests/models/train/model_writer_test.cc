#include "models/train/model_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models::model_writer_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class ModelWriter : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_ / name; }
  absl::Status Write(const std::string& name) const {
    return WriteModelDirectory(Path(name), {{"weight", at::ones({2, 2})}}, /*exact=*/{}, {{"config.json", "{}"}});
  }
  static std::vector<std::string> Names(const fs::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
    return names;
  }
  static void WriteText(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string Text(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void ExpectRefused(const std::string& name, const std::string& why) const {
    const absl::Status status = CheckModelDirectory(Path(name), "");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), StartsWith("--out=" + Path(name) + " cannot be created: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  const TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path();
};

TEST_F(ModelWriter, MakesFoldersAndNothingBesideThem) {
  ASSERT_TRUE(CheckModelDirectory(Path("a/b/"), "").ok());
  ASSERT_TRUE(Write("a/b/").ok());
  EXPECT_THAT(Names(Path("a")), UnorderedElementsAre("b"));
  EXPECT_THAT(Names(Path("a/b")), UnorderedElementsAre("model.safetensors", "config.json"));
}

TEST_F(ModelWriter, ANameMayBeAsLongAsTheFileSystemLets) {
  const std::string longest(255, 'm');
  ASSERT_TRUE(Write(longest).ok());
  EXPECT_THAT(Names(directory_), UnorderedElementsAre(longest));
}

TEST_F(ModelWriter, AModelIsReplacedAsAWhole) {
  fs::create_directories(Path("model"));
  WriteText(Path("model/labels.txt"), "of another model\n");
  ASSERT_TRUE(CheckModelDirectory(Path("model"), "").ok());
  ASSERT_TRUE(Write("model").ok());
  EXPECT_THAT(Names(Path("model")), UnorderedElementsAre("model.safetensors", "config.json"));
  EXPECT_THAT(Names(directory_), UnorderedElementsAre("model"));
}

TEST_F(ModelWriter, AFileIsNoPlaceForAModel) {
  WriteText(Path("notes.md"), "precious");
  ExpectRefused("notes.md", "not a folder");
  EXPECT_EQ(Write("notes.md").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Text(Path("notes.md")), "precious");
  ExpectRefused("notes.md/model", "notes.md is not a folder");
}

TEST_F(ModelWriter, AModelThatCannotTakeItsPlaceIsKept) {
  fs::create_directories(Path("model"));
  WriteText(Path("model/notes.md"), "precious");
  ExpectRefused("model", "files that are not a model");
  const std::string message(Write("model").message());
  EXPECT_EQ(Text(Path("model/notes.md")), "precious");
  const std::string before = "the complete model is in ";
  ASSERT_THAT(message, HasSubstr(before));
  const std::string kept = message.substr(message.find(before) + before.size());
  EXPECT_THAT(Names(kept), UnorderedElementsAre("model.safetensors", "config.json"));
}

TEST_F(ModelWriter, LinksAreFollowed) {
  fs::create_directories(Path("real"));
  fs::create_directory_symlink(Path("real"), Path("link"));
  ASSERT_TRUE(Write("link").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_TRUE(fs::exists(Path("real/model.safetensors")));
  fs::create_symlink(Path("nothing"), Path("dangling"));
  ExpectRefused("dangling", "dangling symbolic link");
  ExpectRefused("dangling/model", "dangling is not a folder");
}

TEST_F(ModelWriter, PlacesThatCannotBeRenamedAreRefusedBeforehand) {
  const absl::Status mounted = CheckModelDirectory("/proc", "");
  EXPECT_THAT(std::string(mounted.message()), HasSubstr("mount point"));
  EXPECT_THAT(std::string(CheckModelDirectory("/", "").message()), HasSubstr("mount point"));

  const fs::path before = fs::current_path();
  fs::create_directories(Path("here"));
  fs::current_path(Path("here"));
  for (const char* const here : {".", "../here", "./"}) {
    EXPECT_THAT(std::string(CheckModelDirectory(here, "").message()),
                HasSubstr("it contains the current working directory"))
        << here;
  }
  EXPECT_TRUE(CheckModelDirectory("model", "").ok());
  fs::current_path(before);
}

TEST_F(ModelWriter, TheCheckpointIsNotKeptInTheModel) {
  fs::create_directories(Path("model"));
  EXPECT_THAT(std::string(CheckModelDirectory(Path("model/"), Path("model/checkpoint")).message()),
              HasSubstr("--checkpoint=" + Path("model/checkpoint") + " is inside it"));
  EXPECT_THAT(std::string(CheckModelDirectory(Path("checkpoint/model"), Path("checkpoint")).message()),
              HasSubstr("--checkpoint=" + Path("checkpoint") + " is a part of its path"));
  EXPECT_TRUE(CheckModelDirectory(Path("model"), Path("model.checkpoint")).ok());
}

TEST_F(ModelWriter, AReadOnlyFolderIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::create_directories(Path("locked/model"));
  fs::permissions(Path("locked"), fs::perms::owner_read | fs::perms::owner_exec);
  ExpectRefused("locked/model", "Permission denied");
  ExpectRefused("locked/model/", "Permission denied");
  fs::permissions(Path("locked"), fs::perms::owner_all);
}

}  // namespace longshort::models::model_writer_test
