// Training's fused form of the model against LibTorch's operations in double precision.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/Reduction.h"
#include "gtest/gtest.h"
#include "models/families/language_model/decoder.h"
#include "models/families/language_model/language_model_config.h"

namespace longshort::models::language_model_segment_forward_test {

std::map<std::string, at::Tensor> RandomTensors(const LanguageModelConfig& config, at::ScalarType type) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  std::map<std::string, at::Tensor> tensors;
  for (const TensorShape& tensor : LanguageModelTensors(config)) {
    const double deviation = tensor.shape.size() == 2 ? 1.0 / std::sqrt(static_cast<double>(tensor.shape[1])) : 0.3;
    at::Tensor value = at::normal(0.0, deviation, tensor.shape, generator);
    if (tensor.name == "pos_emb.inv_freq") value = value.abs();
    tensors[tensor.name] = value.to(type).requires_grad_(tensor.name != "pos_emb.inv_freq");
  }
  return tensors;
}

// The loss of two batches, whose memory is carried over, with its gradients in `tensors`.
double Loss(const LanguageModelConfig& config, const std::map<std::string, at::Tensor>& tensors, at::ScalarType type,
            Dropout* dropout = nullptr) {
  const Decoder decoder = MakeDecoder(config, type, [&](const std::string& name) { return tensors.at(name); });
  const int64_t tokens = 2 * config.segment_length;
  const at::Tensor ids = at::arange(2 * 2 * tokens, at::kLong).mul(7).remainder(config.vocabulary_size);
  StreamMemory memory = ZeroMemory(decoder, 2);
  at::Tensor loss = at::zeros({}, type);
  for (const at::Tensor& batch : ids.view({2, 2, tokens}).unbind()) {
    const at::Tensor logits = ForwardSegments(decoder, batch, memory, dropout);
    loss = loss + at::cross_entropy_loss(logits.flatten(0, 1), (batch.flatten() * 3).remainder(config.vocabulary_size));
  }
  loss.backward();
  return loss.item<double>();
}

TEST(SegmentForward, HasTheGradientsOfTheReferenceInDouble) {
  LanguageModelConfig config;
  config.layers = 2;
  config.model_width = 32;
  config.heads = 2;
  config.feed_forward_width = 48;
  config.chunk_size = 4;
  config.window_length = 10;
  config.memory_length = 24;
  config.segment_length = 12;
  config.vocabulary_size = 31;
  std::vector<LanguageModelConfig> configs(7, config);
  configs[1].pre_layer_norm = false;
  configs[2].activation = Activation::kRelu;
  configs[3].projection_bias = true;
  configs[3].heads = 4;
  configs[4].chunk_rank = 3;
  configs[4].window_length = 33;
  configs[4].memory_length = 36;
  configs[5].window_position_clamp = 4;
  configs[5].chunk_position_clamp = 3;
  configs[6].model_width = 24;  // no whole vectors: only attention is fused
  configs[6].heads = 3;
  for (const LanguageModelConfig& one : configs) {
    SCOPED_TRACE(ToJson(one));
    const auto fused = RandomTensors(one, at::kFloat), exact = RandomTensors(one, at::kDouble);
    EXPECT_NEAR(Loss(one, fused, at::kFloat), Loss(one, exact, at::kDouble), 1e-5);
    for (const auto& [name, tensor] : exact) {
      if (!tensor.requires_grad() || !tensor.grad().defined()) continue;
      ASSERT_TRUE(fused.at(name).grad().defined()) << name;
      const double error = (fused.at(name).grad().to(at::kDouble) - tensor.grad()).abs().max().item<double>();
      EXPECT_LT(error, 2e-5 * std::max(0.1, tensor.grad().abs().max().item<double>())) << name;
    }
  }
}

LanguageModelConfig DroppedConfig() {
  LanguageModelConfig config;
  config.layers = 2;
  config.model_width = 16;
  config.heads = 2;
  config.feed_forward_width = 32;
  config.chunk_size = 4;
  config.window_length = 10;
  config.memory_length = 24;
  config.segment_length = 12;
  config.vocabulary_size = 31;
  return config;
}

// In double precision, along random directions of all weights, with the same masks and memory at each point.
TEST(SegmentForward, GradientsWithDropoutAreThoseOfFiniteDifferences) {
  using Tensors = std::map<std::string, at::Tensor>;
  const LanguageModelConfig config = DroppedConfig();
  const Tensors tensors = RandomTensors(config, at::kDouble);
  const auto decoder_of = [&](const Tensors& point) {
    return MakeDecoder(config, at::kDouble, [&](const std::string& name) { return point.at(name); });
  };
  const Decoder fixed = decoder_of(tensors);
  const at::Tensor ids = at::arange(4 * config.segment_length, at::kLong).mul(7).remainder(31).view({2, -1});
  const auto loss = [&](const Tensors& point) {
    Dropout dropout({.rows = 0.2}, 4, {5, 6});
    StreamMemory memory = ZeroMemory(fixed, 2);
    const at::Tensor logits = ForwardSegments(decoder_of(point), ids, memory, &dropout);
    return at::cross_entropy_loss(logits.flatten(0, 1), (ids.flatten() * 3).remainder(31));
  };
  loss(tensors).backward();
  for (int i = 0; i < 8; ++i) {
    constexpr double kStep = 1e-5;
    double expected = 0;
    Tensors above, below;
    for (const auto& [name, tensor] : tensors) {
      const bool moves = tensor.grad().defined();
      const at::Tensor move = moves ? at::randn_like(tensor.detach()) * kStep : at::zeros_like(tensor.detach());
      above[name] = tensor.detach() + move;
      below[name] = tensor.detach() - move;
      if (moves) expected += (tensor.grad() * move).sum().item<double>();
    }
    EXPECT_NEAR((loss(above) - loss(below)).item<double>() / 2, expected, 1e-11 + 1e-4 * std::abs(expected));
  }
}

TEST(SegmentForward, ADropoutOfRateZeroChangesNoBit) {
  const LanguageModelConfig config = DroppedConfig();
  const auto tensors = RandomTensors(config, at::kFloat);
  Dropout none({}, 4, {5, 6}), some({.rows = 0.1}, 4, {5, 6});
  const double expected = Loss(config, tensors, at::kFloat);
  EXPECT_EQ(Loss(config, tensors, at::kFloat, &none), expected);
  EXPECT_NE(Loss(config, tensors, at::kFloat, &some), expected);
}

}  // namespace longshort::models::language_model_segment_forward_test
