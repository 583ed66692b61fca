#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/language_model/language_model_config.h"

namespace longshort::models::language_model_tensors_test {

using ::testing::ElementsAre;

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
  EXPECT_EQ(CountParameters(LanguageModelTensors(config)), 44'294'448);
  config.layers = 30;
  EXPECT_EQ(CountParameters(LanguageModelTensors(config)), 110'576'064);
}

}  // namespace longshort::models::language_model_tensors_test
