// Dropout in the network of a text classifier.

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "models/ops/layers/dropout.h"
#include "tests/models/families/text_classifier/random_text_model.h"

namespace longshort::models::text_dropout_test {

std::map<std::string, at::Tensor> TensorsOf(const TextClassifierConfig& config, at::ScalarType type) {
  std::map<std::string, at::Tensor> tensors = RandomTextTensors(config, 3);
  for (auto& [name, tensor] : tensors) tensor = tensor.to(type).requires_grad_(true);
  return tensors;
}

// The logits of two documents. `dropout`: null: none.
at::Tensor Logits(const TextClassifierConfig& config, const std::map<std::string, at::Tensor>& tensors,
                  Dropout* dropout) {
  const TextNetwork network = MakeTextNetwork(config, [&](const std::string& name) { return tensors.at(name); });
  const std::vector<int32_t> first = {5, 4, 7, 9, 11, 3, 22}, second = {8, 2, 2, 6, 10, 12, 13, 14, 15, 16, 17};
  const std::vector<absl::Span<const int32_t>> documents = {first, second};
  return network.Logits(std::make_shared<PackedDocuments>(network.Pack(documents)), dropout);
}

std::vector<TextClassifierConfig> Configs() {
  std::vector<TextClassifierConfig> configs = {SmallTextConfig(), SmallEncoderConfig()};
  configs[0].feed_forward_width = 32;  // widths for the fused kernels
  return configs;
}

TEST(TextDropout, RatesOfZeroChangeNoBit) {
  for (const TextClassifierConfig& config : Configs()) {
    const auto tensors = TensorsOf(config, at::kFloat);
    Dropout none({}, 1), rows({.rows = 0.1}, 1), attention({.attention = 0.1}, 1);
    const at::Tensor expected = Logits(config, tensors, nullptr);
    EXPECT_TRUE(at::equal(Logits(config, tensors, &none), expected));
    EXPECT_FALSE(at::equal(Logits(config, tensors, &rows), expected));
    EXPECT_FALSE(at::equal(Logits(config, tensors, &attention), expected));
  }
}

// In double precision, along random directions of all weights, with the same masks at each point.
TEST(TextDropout, GradientsAreThoseOfFiniteDifferences) {
  using Tensors = std::map<std::string, at::Tensor>;
  for (const TextClassifierConfig& config : Configs()) {
    const Tensors tensors = TensorsOf(config, at::kDouble);
    const at::Tensor weights = at::tensor({1.0, -2.0, 0.5}, at::kFloat);
    const auto value = [&](const Tensors& point) {
      Dropout dropout({.rows = 0.2, .attention = 0.3}, 4);
      return (Logits(config, point, &dropout) * weights).sum();
    };
    value(tensors).backward();
    for (int i = 0; i < 8; ++i) {
      constexpr double kStep = 3e-4;
      double expected = 0;
      Tensors above, below;
      for (const auto& [name, tensor] : tensors) {
        const at::Tensor move = at::randn_like(tensor.detach()) * kStep;
        above[name] = tensor.detach() + move;
        below[name] = tensor.detach() - move;
        if (tensor.grad().defined()) expected += (tensor.grad() * move).sum().item<double>();
      }
      // The logits are float32, with an error of about 1e-6; the third derivatives add less.
      EXPECT_NEAR((value(above) - value(below)).item<double>() / 2, expected, 1e-5 + 0.01 * std::abs(expected));
    }
  }
}

}  // namespace longshort::models::text_dropout_test
