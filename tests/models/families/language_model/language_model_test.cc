#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/language_model/transformer_ls.h"
#include "models/train/language_model_trainer.h"
#include "models/train/parameters.h"
#include "models/train/training_text.h"
#include "tests/base/temporary_directory.h"
#include "tests/models/families/language_model/random_decoder.h"

namespace longshort::models::language_model_test {

using ::testing::HasSubstr;

// A model directory with random weights, to be damaged.
class LoadLanguageModelTest : public ::testing::Test {
 protected:
  LoadLanguageModelTest() {
    config_.vocabulary_size = 264;
    config_.tokenizer = TokenizerKind::kFairseqBytes;
    Write(config_);
  }

  void Write(const LanguageModelConfig& config) {
    EXPECT_TRUE(WriteLanguageModel(directory_, config, InitialParameters(LanguageModelTensors(config), 1),
                                   ByteVocabulary("text"))
                    .ok());
  }
  void WriteConfigOnly(const LanguageModelConfig& config) {
    std::ofstream(directory_ + "/config.json") << ToJson(config);
  }
  absl::Status Refusal() { return LoadLanguageModel(directory_, {}).status(); }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path();
  LanguageModelConfig config_ = SmallConfig();
};

TEST_F(LoadLanguageModelTest, DescribesTheModel) {
  const auto model = LoadLanguageModel(directory_, {.precision = "bf16", .threads = 1});
  ASSERT_TRUE(model.ok()) << model.status();
  const LanguageModelInfo& info = model->info();
  EXPECT_EQ(info.layers, 2);
  EXPECT_EQ(info.memory_length, 24);
  EXPECT_EQ(info.precision, "bf16");
  EXPECT_EQ(info.fingerprint.size(), 64u);
}

TEST_F(LoadLanguageModelTest, NamesTheTensorThatDoesNotFitTheConfig) {
  config_.layers = 3;
  WriteConfigOnly(config_);
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("layers.2."));
  config_ = SmallConfig();
  config_.vocabulary_size = 200;
  WriteConfigOnly(config_);
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("in_emb.weight"));
}

TEST_F(LoadLanguageModelTest, RefusesAnUnknownPrecisionAndAMissingFile) {
  EXPECT_THAT(std::string(LoadLanguageModel(directory_, {.precision = "int4", .threads = 1}).status().message()),
              HasSubstr("'int4'"));
  const LoadOptions on_gpu = {.precision = "int8", .devices = {{.kind = DeviceKind::kEmulated}}};
  EXPECT_THAT(std::string(LoadLanguageModel(directory_, on_gpu).status().message()),
              HasSubstr("int8 is for the CPU, and a worker is on emulated:0"));
  std::filesystem::remove(directory_ + "/model.safetensors");
  EXPECT_THAT(std::string(Refusal().message()), HasSubstr("model.safetensors"));
}

TEST_F(LoadLanguageModelTest, TheTokenizerAndTheVocabularyBelongTogether) {
  config_.tokenizer = TokenizerKind::kNone;
  WriteConfigOnly(config_);
  const auto with_vocabulary = OpenModelDirectory(directory_);
  ASSERT_TRUE(with_vocabulary.ok());
  EXPECT_THAT(std::string(LoadTokenizer(*with_vocabulary).status().message()), HasSubstr("vocabulary.txt"));

  config_.tokenizer = TokenizerKind::kFairseqBytes;
  WriteConfigOnly(config_);
  std::filesystem::remove(directory_ + "/vocabulary.txt");
  const auto without_vocabulary = OpenModelDirectory(directory_);
  ASSERT_TRUE(without_vocabulary.ok());
  EXPECT_THAT(std::string(LoadTokenizer(*without_vocabulary).status().message()), HasSubstr("vocabulary.txt"));
}

TEST_F(LoadLanguageModelTest, NamesTheTensorThatHasValuesThatAreNotFinite) {
  const std::string weights = directory_ + "/model.safetensors";
  const StoredTensor bias = *SafetensorsFile::Open(weights)->Find("layers.1.ff.fc1.bias");
  ASSERT_EQ(bias.type, DataType::kF16);
  constexpr uint16_t kNotANumber = 0x7E00, kMinusInfinity = 0xFC00;
  for (const uint16_t value : {kNotANumber, kMinusInfinity}) {
    std::fstream file(weights, std::ios::in | std::ios::out | std::ios::binary);
    for (const int index : {2, 3, 7}) {
      file.seekp(bias.offset + 2 * index).write(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    file.close();
    const absl::Status refused = Refusal();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(refused.message()),
        testing::AllOf(HasSubstr(weights), HasSubstr("layers.1.ff.fc1.bias has 3 values"), HasSubstr("index 2")));
  }
}

// Stops at each check, up to the last matrix that is packed.
TEST_F(LoadLanguageModelTest, StopsAtEveryCheck) {
  const auto load = [this](int moments) {
    const auto opened = OpenModelDirectory(directory_, {}, [&moments] { return --moments < 0; });
    return opened.ok() ? LoadLanguageModel(*opened, {.threads = 1}).status() : opened.status();
  };
  int moments = 0;
  while (absl::IsCancelled(load(moments))) ++moments;
  EXPECT_TRUE(load(moments).ok()) << load(moments);
  const size_t tensors = SafetensorsFile::Open(directory_ + "/model.safetensors")->tensors().size();
  constexpr int kMatrices = 5 * 2 + 1;
  EXPECT_GE(static_cast<size_t>(moments), tensors + kMatrices);
}

// Another file is copied over the weights, in place.
TEST_F(LoadLanguageModelTest, RefusesWeightsThatAreCutOrWrittenWhileTheyAreRead) {
  const std::string weights = directory_ + "/model.safetensors";
  for (const std::string precision : {"fp32", "bf16", "int8"}) {
    const auto opened = OpenModelDirectory(directory_);
    ASSERT_TRUE(opened.ok());
    std::filesystem::resize_file(weights, std::filesystem::file_size(weights) - 4);
    const auto cut = LoadLanguageModel(*opened, {.precision = precision, .threads = 1}).status();
    EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable) << cut;
    EXPECT_THAT(std::string(cut.message()), HasSubstr(weights));
    std::filesystem::resize_file(weights, std::filesystem::file_size(weights) + 4);  // the last weight is 0 now
    const auto written = LoadLanguageModel(*opened, {.precision = precision, .threads = 1}).status();
    EXPECT_EQ(written.code(), absl::StatusCode::kUnavailable) << written;
  }
}

}  // namespace longshort::models::language_model_test
