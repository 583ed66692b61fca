#include "models/train/optimizer.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"

namespace longshort::models::train_optimizer_test {

// What PyTorch's OneCycleLR gives for these settings.
TEST(Optimizer, OneCycleIsPyTorchs) {
  OptimizerOptions options;
  UseOneCycle(options);
  options.peak_learning_rate = 1e-4;
  options.warmup_steps = 1000;
  options.total_steps = 5000;
  const struct {
    int64_t step;
    double rate, beta1;
  } expected[] = {
      {0, 4e-6, 0.95}, {333, 3.6e-5, 0.95 - 0.1 / 3}, {999, 1e-4, 0.85}, {2999, 5.00002e-5, 0.9}, {4999, 4e-10, 0.95}};
  for (const auto& [step, rate, beta1] : expected) {
    const StepRates rates = RatesOf(options, step);
    EXPECT_NEAR(rates.learning_rate, rate, 1e-12) << step;
    EXPECT_NEAR(rates.beta1, beta1, 1e-12) << step;
  }
}

TEST(Optimizer, TheRateRisesAndFallsByACosine) {
  OptimizerOptions options;
  options.peak_learning_rate = 2e-3;
  options.warmup_steps = 10;
  options.total_steps = 110;
  options.final_fraction = 0.02;
  EXPECT_NEAR(RatesOf(options, 0).learning_rate, 2e-4, 1e-12);
  EXPECT_NEAR(RatesOf(options, 9).learning_rate, 2e-3, 1e-12);
  EXPECT_NEAR(RatesOf(options, 60).learning_rate, 0.51 * 2e-3, 1e-12);
  EXPECT_NEAR(RatesOf(options, 110).learning_rate, 0.02 * 2e-3, 1e-12);
}

// `value` with a gradient.
NamedParameter Parameter(const std::string& name, const at::Tensor& value, const at::Tensor& gradient) {
  const at::Tensor leaf = value.clone().requires_grad_();
  leaf.mutable_grad() = gradient.clone();
  return {name, leaf};
}

TEST(Optimizer, DecaysMatricesOnlyAndClearsGradients) {
  OptimizerOptions options;
  options.weight_decay = 0.5;
  options.gradient_norm = 100;
  const at::Tensor matrix = at::full({2, 2}, 2.0), vector = at::full({2}, 2.0);
  const std::vector<NamedParameter> parameters = {
      Parameter("layer.weight", matrix, at::ones({2, 2})), Parameter("layer.bias", vector, at::ones({2})),
      Parameter("norm.weight", vector, at::ones({2})), Parameter("position.weight", matrix, at::ones({2, 2}))};
  EXPECT_NEAR(Optimizer(options, parameters).Step(0, {.learning_rate = 0.1, .beta1 = 0.9}), std::sqrt(12), 1e-6);
  // Adam's first step is the rate, in the gradient's direction; the decay is 0.1 * 0.5 * 2.
  for (const NamedParameter& parameter : parameters) {
    const double expected = parameter.name == "layer.weight" ? 1.8 : 1.9;
    EXPECT_LT((parameter.value - expected).abs().max().item<double>(), 1e-6) << parameter.name;
    EXPECT_FALSE(parameter.value.grad().defined()) << parameter.name;
  }
}

TEST(Optimizer, OneCycleDecaysAllWeights) {
  OptimizerOptions options;
  UseOneCycle(options);
  options.weight_decay = 0.5;
  const std::vector<NamedParameter> parameters = {Parameter("norm.bias", at::full({2}, 2.0), at::zeros({2}))};
  Optimizer(options, parameters).Step(0, {.learning_rate = 0.1, .beta1 = 0.9});
  EXPECT_LT((parameters[0].value - 1.9).abs().max().item<double>(), 1e-6) << "less 0.1 * 0.5 * 2";
}

TEST(Optimizer, ScalesLongGradientsToTheirMaximumNorm) {
  OptimizerOptions options;
  options.gradient_norm = 1;
  Optimizer optimizer(options, {Parameter("a.bias", at::zeros({2}), at::tensor({3.0F, 4.0F}))});
  EXPECT_NEAR(optimizer.Step(0, {.learning_rate = 0.1, .beta1 = 0.9}), 5, 1e-6);
  const at::Tensor mean = optimizer.State()[0].value;
  EXPECT_LT((mean - at::tensor({0.06F, 0.08F})).abs().max().item<double>(), 1e-7);
}

TEST(Optimizer, AGradientThatIsNotFiniteChangesNothing) {
  const std::vector<NamedParameter> parameters = {
      Parameter("a.bias", at::ones({2}), at::tensor({1.0F, std::numeric_limits<float>::infinity()}))};
  EXPECT_FALSE(std::isfinite(Optimizer({}, parameters).Step(0, {.learning_rate = 0.1, .beta1 = 0.9})));
  EXPECT_TRUE(at::equal(parameters[0].value, at::ones({2})));
}

}  // namespace longshort::models::train_optimizer_test
