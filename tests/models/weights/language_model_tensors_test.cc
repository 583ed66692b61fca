#include "models/weights/language_model_tensors.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/weights/safetensors_writer.h"
#include "tests/models/weights/status_matchers.h"
#include "tests/models/weights/temporary_directory.h"

namespace longshort {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

LanguageModelConfig SmallConfig() {
  LanguageModelConfig config;
  config.layers = 2;
  config.model_width = 6;
  config.heads = 3;
  config.feed_forward_width = 5;
  config.chunk_rank = 2;
  config.vocabulary_size = 7;
  return config;
}

std::map<std::string, std::vector<int64_t>> ShapesOf(const LanguageModelConfig& config) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const TensorShape& tensor : LanguageModelTensors(config)) shapes[tensor.name] = tensor.shape;
  return shapes;
}

TEST(LanguageModelTensors, HaveTheShapesOfThePaper) {
  const auto shapes = ShapesOf(SmallConfig());
  EXPECT_THAT(shapes.at("in_emb.weight"), ElementsAre(7, 6));
  EXPECT_THAT(shapes.at("out_emb.bias"), ElementsAre(7));
  EXPECT_THAT(shapes.at("pos_emb.inv_freq"), ElementsAre(3));
  EXPECT_THAT(shapes.at("layers.1.attn.r_w_bias"), ElementsAre(3, 2));
  EXPECT_THAT(shapes.at("layers.1.attn.dconv_1.weight"), ElementsAre(6, 6));  // 3 heads * rank 2
  EXPECT_THAT(shapes.at("layers.0.ff.fc1.weight"), ElementsAre(5, 6));
  EXPECT_THAT(shapes.at("layers.0.ff.fc2.weight"), ElementsAre(6, 5));
  EXPECT_THAT(shapes.at("layers.0.ff.fc2.bias"), ElementsAre(6));
  EXPECT_EQ(shapes.count("layers.2.norm1.weight"), 0);
}

TEST(LanguageModelTensors, ProjectionsHaveBiasesOnlyIfTheConfigurationSaysSo) {
  LanguageModelConfig config = SmallConfig();
  EXPECT_EQ(ShapesOf(config).count("layers.0.attn.proj_key.bias"), 0);
  const size_t without = LanguageModelTensors(config).size();
  config.projection_bias = true;
  EXPECT_THAT(ShapesOf(config).at("layers.0.attn.proj_key.bias"), ElementsAre(6));
  EXPECT_EQ(LanguageModelTensors(config).size(), without + 2 * 4);  // 2 layers, 4 projections
}

// The published enwik8 models have 44M and 110M parameters.
TEST(LanguageModelTensors, CountThePublishedParameters) {
  LanguageModelConfig config;
  EXPECT_EQ(CountParameters(config), 44'294'448);
  config.layers = 30;
  EXPECT_EQ(CountParameters(config), 110'576'064);
}

// A weights file of SmallConfig that a test then spoils.
class CheckTensorsTest : public ::testing::Test {
 protected:
  CheckTensorsTest() : bytes_(4096) {
    for (const TensorShape& tensor : LanguageModelTensors(SmallConfig()))
      Add(tensor.name, DataType::kF32, tensor.shape);
  }

  void Add(const std::string& name, DataType type, const std::vector<int64_t>& shape) {
    const auto size = static_cast<size_t>(*ElementCount(shape) * DataTypeBytes(type));
    tensors_[name] = {name, type, shape, absl::MakeConstSpan(bytes_).subspan(0, size)};
  }

  absl::Status Check() {
    std::vector<NamedTensor> list;
    for (const auto& entry : tensors_) list.push_back(entry.second);
    const std::string path = directory_.File("model.safetensors");
    if (absl::Status status = WriteSafetensors(path, list); !status.ok()) return status;
    const auto file = SafetensorsFile::Open(path);
    return file.ok() ? CheckTensors(*file, SmallConfig()) : file.status();
  }

  const std::vector<std::byte> bytes_;
  const TemporaryDirectory directory_;
  std::map<std::string, NamedTensor> tensors_;
};

TEST_F(CheckTensorsTest, TakesAWholeModelInAnyFloatType) {
  EXPECT_THAT(Check(), IsOk());
  Add("layers.0.norm1.weight", DataType::kF16, {6});
  Add("layers.0.norm1.bias", DataType::kBF16, {6});
  EXPECT_THAT(Check(), IsOk());
}

TEST_F(CheckTensorsTest, NamesAMissingTensor) {
  tensors_.erase("layers.1.attn.r_net.weight");
  EXPECT_THAT(Check(), Refuses(Words{"model.safetensors", "'layers.1.attn.r_net.weight' is missing"}));
}

TEST_F(CheckTensorsTest, NamesAnUnknownTensor) {
  Add("layers.2.norm1.weight", DataType::kF32, {6});
  EXPECT_THAT(Check(), Refuses(Words{"model.safetensors", "'layers.2.norm1.weight' is unknown"}));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherShape) {
  Add("layers.0.ff.fc1.weight", DataType::kF32, {6, 5});
  EXPECT_THAT(Check(), Refuses(Words{"'layers.0.ff.fc1.weight'", "[6,5]", "[5,6]"}));
}

TEST_F(CheckTensorsTest, NamesATensorOfAnotherType) {
  Add("out_emb.bias", DataType::kI32, {7});
  EXPECT_THAT(Check(), Refuses(Words{"'out_emb.bias'", "I32", "F32, F16 or BF16"}));
}

}  // namespace
}  // namespace longshort
