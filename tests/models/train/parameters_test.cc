#include "models/train/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models::parameters_test {

using ::testing::HasSubstr;

TEST(InitialParametersTest, TheSeedDecidesAndRunningStatisticsAreNotTrained) {
  const std::vector<TensorShape> tensors = {{"a.weight", {3, 4}}, {"a.running_mean", {4}, /*is_trained=*/false}};
  const auto parameters = InitialParameters(tensors, 7);
  EXPECT_TRUE(parameters[0].value.requires_grad());
  EXPECT_FALSE(parameters[1].value.requires_grad());
  EXPECT_TRUE(at::equal(parameters[0].value, InitialParameters(tensors, 7)[0].value));
  EXPECT_FALSE(at::equal(parameters[0].value, InitialParameters(tensors, 8)[0].value));
}

// The weights by their names.
std::map<std::string, at::Tensor> Drawn(InitialWeights distribution, const std::vector<TensorShape>& tensors) {
  std::map<std::string, at::Tensor> values;
  for (const NamedParameter& parameter : InitialParameters(tensors, 3, distribution)) {
    values[parameter.name] = parameter.value.detach();
  }
  return values;
}

// A uniform distribution in +-bound reaches its bounds and has the deviation bound / sqrt(3); 4 standard errors of the
// deviation of n values are 1.8 / sqrt(n) of it.
void ExpectUniform(const at::Tensor& values, double bound) {
  const auto count = static_cast<double>(values.numel());
  EXPECT_LE(values.abs().max().item<double>(), bound);
  EXPECT_GT(values.abs().max().item<double>(), bound * (1 - 20 / count));
  EXPECT_NEAR(values.std().item<double>() * std::sqrt(3) / bound, 1, 1.8 / std::sqrt(count));
}

// 4 standard errors of the deviation of n normal values are 2.9 / sqrt(n) of it, and of their mean 4 / sqrt(n). The
// largest of 200 values or more exceeds two deviations, where a uniform distribution ends at 1.7.
void ExpectNormal(const at::Tensor& values, double deviation, double mean = 0) {
  const double root = std::sqrt(static_cast<double>(values.numel()));
  EXPECT_NEAR(values.std().item<double>() / deviation, 1, 2.9 / root);
  EXPECT_NEAR(values.mean().item<double>(), mean, 4 * deviation / root);
  EXPECT_GT((values - mean).abs().max().item<double>(), 2 * deviation);
}

void ExpectAll(const at::Tensor& values, double value) { EXPECT_TRUE(at::equal(values, at::full_like(values, value))); }

// PyTorch's nn.Linear, and what lra/model.py and lra/attention_transformer_ls.py of the official code set after it.
TEST(InitialParametersTest, LongRangeArenasClassifiersBeginAsInTheOfficialCode) {
  TextClassifierConfig config;
  config.feed_forward_width = 1024;
  config.value_convolution = 3;
  auto weights = Drawn(InitialWeights::kLongRangeArena, TextClassifierTensors(config));
  for (const char* const map : {"mha.W_q", "mha.W_k", "mha.W_v", "mha.W_o", "mha.dconv_fc", "mlpblock.0"}) {
    SCOPED_TRACE(map);
    const std::string name = std::string("model.transformer_1.") + map;
    ExpectUniform(weights.at(name + ".weight"), 1.0 / 8);  // 64 inputs
    ExpectUniform(weights.at(name + ".bias"), 1.0 / 8);
  }
  ExpectUniform(weights.at("model.transformer_0.mlpblock.3.weight"), 1.0 / 32);  // 1,024 inputs
  ExpectUniform(weights.at("seq_classifer.mlpblock.0.bias"), 1.0 / 8);
  ExpectNormal(weights.at("model.embeddings.word_embeddings.weight"), 0.02);
  ExpectNormal(weights.at("model.embeddings.position_embeddings.weight"), 0.02);
  ExpectAll(weights.at("model.cls_embed"), 0);
  ExpectAll(weights.at("model.transformer_0.mha.conv.weight"), 0);
  for (const char* const norm : {"norm1", "mha.dual_ln_l", "mha.dual_ln_s", "norm2"}) {
    ExpectAll(weights.at(std::string("model.transformer_0.") + norm + ".weight"), 1);
    ExpectAll(weights.at(std::string("model.transformer_0.") + norm + ".bias"), 0);
  }
}

// TransformerLSModel._init_weights of the official code overrides what its layers set.
TEST(InitialParametersTest, LanguageModelsBeginAsInTheOfficialCode) {
  LanguageModelConfig config;
  config.vocabulary_size = 264;
  config.model_width = 256;
  config.layers = 1;
  auto weights = Drawn(InitialWeights::kLanguageModel, LanguageModelTensors(config));
  for (const auto& [name, values] : weights) {
    SCOPED_TRACE(name);
    if (name == "pos_emb.inv_freq") continue;
    const bool scores = name.ends_with("r_w_bias") || name.ends_with("r_r_bias");
    if (name.ends_with("bias") && !scores) {
      ExpectAll(values, 0);
    } else {
      ExpectNormal(values, 0.02, values.dim() == 1 ? 1 : 0);
    }
  }
}

// CvT's official code sets matrices, and leaves convolutions to PyTorch.
TEST(InitialParametersTest, ImageNetworksBeginAsInCvTsOfficialCode) {
  auto weights = Drawn(InitialWeights::kCvt, {{"embed.weight", {512, 3, 7, 7}},
                                              {"embed.bias", {512}},
                                              {"fc1.weight", {256, 64}},
                                              {"fc1.bias", {256}},
                                              {"norm.weight", {64}},
                                              {"norm.bias", {64}}});
  ExpectUniform(weights.at("embed.weight"), 1 / std::sqrt(147));
  ExpectUniform(weights.at("embed.bias"), 1 / std::sqrt(147));
  ExpectNormal(weights.at("fc1.weight"), 0.02);
  ExpectAll(weights.at("fc1.bias"), 0);
  ExpectAll(weights.at("norm.weight"), 1);
  ExpectAll(weights.at("norm.bias"), 0);
}

TEST(CopyStoredTest, CopiesAllOrChangesNone) {
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/stored.safetensors";
  const at::Tensor stored = at::arange(4, at::kFloat);
  const at::Tensor square = stored.view({2, 2});
  ASSERT_TRUE(WriteSafetensors(path, {AsNamed("first", stored), AsNamed("second", square)}).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();

  std::vector<NamedParameter> tensors = {{"first", at::zeros({4})}, {"second", at::zeros({4})}};
  const absl::Status other_shape = CopyStored(*file, tensors);
  EXPECT_EQ(other_shape.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other_shape.message()), HasSubstr("tensor second"));
  EXPECT_TRUE(at::equal(tensors[0].value, at::zeros({4})));

  tensors[1].value = at::zeros({2, 2});
  ASSERT_TRUE(CopyStored(*file, tensors).ok());
  EXPECT_TRUE(at::equal(tensors[0].value, stored));
  EXPECT_TRUE(at::equal(tensors[1].value, square));
}

}  // namespace longshort::models::parameters_test
