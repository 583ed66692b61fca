// Dropout in the network of a text classifier.

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

std::map<std::string, at::Tensor> Tensors(const TextClassifierConfig& config, at::ScalarType type) {
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
    const auto tensors = Tensors(config, at::kFloat);
    Dropout none({}, 1), rows({.rows = 0.1}, 1), attention({.attention = 0.1}, 1);
    const at::Tensor expected = Logits(config, tensors, nullptr);
    EXPECT_TRUE(at::equal(Logits(config, tensors, &none), expected));
    EXPECT_FALSE(at::equal(Logits(config, tensors, &rows), expected));
    EXPECT_FALSE(at::equal(Logits(config, tensors, &attention), expected));
  }
}

// In double precision, along a random direction of each tensor, with the same masks at each point.
TEST(TextDropout, GradientsAreThoseOfFiniteDifferences) {
  for (const TextClassifierConfig& config : Configs()) {
    auto tensors = Tensors(config, at::kDouble);
    const at::Tensor weights = at::tensor({1.0, -2.0, 0.5}, at::kFloat);
    const auto value = [&](const std::map<std::string, at::Tensor>& at_point) {
      Dropout dropout({.rows = 0.2, .attention = 0.3}, 4);
      return (Logits(config, at_point, &dropout) * weights).sum();
    };
    value(tensors).backward();
    for (const auto& [name, tensor] : tensors) {
      if (!tensor.grad().defined()) continue;
      constexpr double kStep = 1e-3;
      const at::Tensor direction = at::randn_like(tensor.detach());
      const auto moved = [&](double step) {
        std::map<std::string, at::Tensor> point = tensors;
        point[name] = tensor.detach() + direction * step;
        return value(point).item<double>();
      };
      const double expected = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      // The logits are float32: 1e-6 of them by 2e-3. The third derivatives add about 1e-6.
      EXPECT_NEAR((tensor.grad() * direction).sum().item<double>(), expected, 3e-3) << name;
    }
  }
}

}  // namespace longshort::models::text_dropout_test
