// Training's fused kernels against LibTorch's operations in double precision.

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/Reduction.h"
#include "c10/core/GradMode.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_network.h"
#include "models/train/optimizer.h"
#include "models/train/parameters.h"
#include "tests/models/families/text_classifier/random_text_model.h"

namespace longshort::models::layer_halves_test {

// A network in one precision, and a batch of documents with their classes. Around the kernels' blocks of rows.
class Problem {
 public:
  Problem(const TextClassifierConfig& config, at::ScalarType type) : config_(config) {
    for (const auto& [name, value] : RandomTextTensors(config, 3)) {
      parameters_.push_back({name, value.to(type, /*non_blocking=*/false, /*copy=*/true).requires_grad_()});
    }
    std::mt19937_64 random(5);
    for (const int64_t length : {1, 95, 97, 230}) {
      for (int32_t& id : documents_.emplace_back(length)) id = static_cast<int32_t>(random() % config.vocabulary_size);
      documents_.back().front() = documents_.back().back() = 2;
    }
    targets_ = at::tensor({0, 1, 2, 1}, at::kLong);
  }

  // The loss, and with gradients kept its backward pass.
  double Loss() {
    const TextNetwork network = MakeTextNetwork(config_, [&](const std::string& name) {
      return std::find_if(parameters_.begin(), parameters_.end(), [&](const auto& one) { return one.name == name; })
          ->value;
    });
    const auto packed = std::make_shared<const PackedDocuments>(
        network.Pack(std::vector<absl::Span<const int32_t>>(documents_.begin(), documents_.end())));
    const at::Tensor loss = at::cross_entropy_loss(network.Logits(packed), targets_);
    if (c10::GradMode::is_enabled()) loss.backward();
    return loss.item<double>();
  }

  std::vector<NamedParameter>& parameters() { return parameters_; }

 private:
  TextClassifierConfig config_;
  std::vector<NamedParameter> parameters_;
  std::vector<std::vector<int32_t>> documents_;
  at::Tensor targets_;
};

TextClassifierConfig Configuration(int64_t number) {
  constexpr ClsKind kKinds[] = {ClsKind::kLastLayer, ClsKind::kAllLayers, ClsKind::kNone, ClsKind::kFirstToken,
                                ClsKind::kVocabulary};
  TextClassifierConfig config = SmallTextConfig();
  config.max_sequence_length = 300;
  config.heads = number % 3 == 0 ? 1 : 2;
  config.model_width = 32;
  config.feed_forward_width = 48;
  config.window_size = number % 2 == 0 ? 8 : 5;
  config.projection_rank = number % 4 == 3 ? 0 : 3 + 10 * (number % 4);
  config.cls = kKinds[number % std::ssize(kKinds)];
  config.normalized_cls = number % 2 == 1;
  config.padding_id = number % 2;
  if (number % 5 == 3) config.layer_norm = LayerNormPlace::kAfter;
  config.dual_norm = config.projection_rank > 0 || number % 8 != 3;
  return config;
}

TEST(LayerHalves, HaveTheGradientsOfTheReferenceInDouble) {
  for (int64_t number = 0; number < 10; ++number) {
    Problem fused(Configuration(number), at::kFloat), exact(Configuration(number), at::kDouble);
    EXPECT_NEAR(fused.Loss(), exact.Loss(), 1e-5) << "case " << number;
    for (size_t i = 0; i < fused.parameters().size(); ++i) {
      const NamedParameter &found = fused.parameters()[i], &expected = exact.parameters()[i];
      ASSERT_EQ(found.value.grad().defined(), expected.value.grad().defined()) << found.name;
      if (!found.value.grad().defined()) continue;
      const at::Tensor difference = (found.value.grad().to(at::kDouble) - expected.value.grad()).abs();
      EXPECT_LT(difference.max().item<double>(), 2e-5 * std::max(0.1, expected.value.grad().abs().max().item<double>()))
          << "case " << number << ", " << found.name;
    }
  }
}

TEST(LayerHalves, TrainAsTheReferenceInDouble) {
  Problem fused(Configuration(0), at::kFloat), exact(Configuration(0), at::kDouble);
  const OptimizerOptions options{.peak_learning_rate = 5e-3, .warmup_steps = 5, .total_steps = 20};
  Optimizer optimizer(options, fused.parameters()), exact_optimizer(options, exact.parameters());
  double first = 0, last = 0;
  for (int64_t step = 0; step < options.total_steps; ++step) {
    const StepRates rates = RatesOf(options, step);
    last = exact.Loss();
    if (step == 0) first = last;
    EXPECT_NEAR(fused.Loss(), last, 2e-6) << step;
    optimizer.Step(step, rates);
    exact_optimizer.Step(step, rates);
  }
  EXPECT_LT(last, first / 2);
}

}  // namespace longshort::models::layer_halves_test
