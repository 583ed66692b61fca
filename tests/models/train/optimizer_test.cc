#include "models/train/optimizer.h"

#include <cstdint>

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

}  // namespace longshort::models::train_optimizer_test
