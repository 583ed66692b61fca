#include "models/weights/model_directory.h"

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models::model_directory_test {

using Words = std::vector<std::string>;

// The smallest weights file: a header of two bytes, no tensor.
const std::string kNoTensors = std::string("\x02\0\0\0\0\0\0\0", 8) + "{}";

class ModelDirectoryTest : public ::testing::Test {
 protected:
  ModelDirectoryTest() {
    directory_.Write("config.json", "{\"a\": 1}");
    directory_.Write("model.safetensors", kNoTensors);
  }

  std::string Fingerprint() {
    const auto opened = OpenModelDirectory(directory_.path());
    EXPECT_THAT(opened, IsOk());
    return opened.ok() ? opened->fingerprint : "";
  }

  const TemporaryDirectory directory_;
};

TEST_F(ModelDirectoryTest, OpensItsFiles) {
  directory_.Write("vocabulary.txt", "101 5\n");
  const auto opened = OpenModelDirectory(directory_.path());
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->config_text, "{\"a\": 1}");
  EXPECT_EQ(opened->vocabulary_text, "101 5\n");
  EXPECT_TRUE(opened->weights.tensors().empty());
  EXPECT_EQ(opened->weights.name(), directory_.File("model.safetensors"));
}

TEST_F(ModelDirectoryTest, DoesWithoutAVocabulary) {
  const auto opened = OpenModelDirectory(directory_.path());
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->vocabulary_text, std::nullopt);
}

TEST_F(ModelDirectoryTest, OpensLabelsIfThereAreSome) {
  EXPECT_EQ(OpenModelDirectory(directory_.path())->labels_text, std::nullopt);
  directory_.Write("labels.txt", "daisy\n");
  EXPECT_EQ(OpenModelDirectory(directory_.path())->labels_text, "daisy\n");
}

TEST_F(ModelDirectoryTest, NamesAMissingFile) {
  for (const std::string name : {"model.safetensors", "config.json"}) {
    std::filesystem::remove(directory_.File(name));
    const auto opened = OpenModelDirectory(directory_.path());
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(opened.status().message()), testing::HasSubstr(directory_.File(name)));
  }
}

TEST_F(ModelDirectoryTest, IsCheckedBeforeItIsRead) {
  const auto refuse = [](const ModelDirectory& opened) {
    EXPECT_EQ(opened.fingerprint, "");
    return absl::ResourceExhaustedError(opened.config_text);
  };
  EXPECT_EQ(OpenModelDirectory(directory_.path(), refuse).status(), absl::ResourceExhaustedError("{\"a\": 1}"));
}

TEST_F(ModelDirectoryTest, ReadingStopsOnRequest) {
  const auto stop = [] { return true; };
  EXPECT_EQ(OpenModelDirectory(directory_.path(), {}, stop).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ModelDirectoryTest, BoundsItsTextFiles) {
  directory_.Write("config.json", std::string((1 << 20) + 1, ' '));
  EXPECT_THAT(OpenModelDirectory(directory_.path()),
              Refuses(Words{"config.json", "1048577 bytes", "limit is 1048576"}));
}

TEST_F(ModelDirectoryTest, NamesABrokenWeightsFile) {
  directory_.Write("model.safetensors", "short");
  EXPECT_THAT(OpenModelDirectory(directory_.path()),
              Refuses(Words{directory_.File("model.safetensors"), "only 5 bytes"}));
}

// Expected values by Python: hashlib.sha256 over each file's
//   len(name).to_bytes(8, "little") + name + len(content).to_bytes(8, "little") + content
TEST_F(ModelDirectoryTest, FingerprintIsTheHashOfNamesLengthsAndContents) {
  EXPECT_EQ(Fingerprint(), "9644bee2bc3bad581c52a3d090293d6f4a34ae06ca9041b405ad7f99a3c3ecb6");
  directory_.Write("vocabulary.txt", "101 5\n");
  EXPECT_EQ(Fingerprint(), "10f2d44a635d457333ae5eef72395c754f425aa47a10821a2b375fc68675f5a1");
}

TEST_F(ModelDirectoryTest, FingerprintNoticesEveryFile) {
  directory_.Write("vocabulary.txt", "101 5\n");
  const std::string unnamed = Fingerprint();
  directory_.Write("labels.txt", "daisy\n");
  EXPECT_NE(Fingerprint(), unnamed);
  const std::string without_tokenizer = Fingerprint();
  directory_.Write("tokenizer.json", "{}");
  EXPECT_NE(Fingerprint(), without_tokenizer);
  const std::string first = Fingerprint();
  EXPECT_EQ(Fingerprint(), first);
  directory_.Write("config.json", "{\"a\": 2}");
  const std::string second = Fingerprint();
  directory_.Write("vocabulary.txt", "101 6\n");
  const std::string third = Fingerprint();
  directory_.Write("model.safetensors", std::string("\x03\0\0\0\0\0\0\0", 8) + "{} ");
  const std::string fourth = Fingerprint();
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_NE(third, fourth);
}

}  // namespace longshort::models::model_directory_test
