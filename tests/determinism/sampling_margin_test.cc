#include "tests/determinism/sampling_margin.h"

#include <memory>
#include <numeric>
#include <vector>

#include "core/sampling/sampler.h"
#include "gtest/gtest.h"
#include "tests/determinism/random_choice.h"

namespace longshort::sampling_margin_test {

constexpr int64_t kVocabulary = 40;

core::SamplingOptions RandomOptions(Random& random) {
  core::SamplingOptions options;
  options.seed = random();
  options.temperature = Chance(random, 0.3) ? 0 : 0.5 + Fraction(random);
  if (Chance(random, 0.3)) options.top_k = Between(random, 1, 20);
  if (Chance(random, 0.3)) options.top_p = 0.5 + 0.4 * Fraction(random);
  if (Chance(random, 0.3)) options.min_p = 0.2 * Fraction(random);
  if (Chance(random, 0.3)) options.repetition_penalty = 0.8 + 0.6 * Fraction(random);
  if (Chance(random, 0.3)) options.frequency_penalty = Fraction(random);
  if (Chance(random, 0.3)) options.logit_bias = {{3, 1.5f}};
  return options;
}

std::vector<float> RandomLogits(Random& random) {
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) logit = static_cast<float>(6 * Fraction(random) - 3);
  return logits;
}

// A margin that says too much would excuse any token, one that says too little none that should be: logits that move by
// a quarter of it keep their token, and few margins are as small as the determinism test excuses.
TEST(SamplingMargin, LogitsThatMoveByLessThanTheMarginChooseTheSameToken) {
  Random random(1);
  std::vector<int32_t> ids(kVocabulary);
  std::iota(ids.begin(), ids.end(), 0);
  const auto all = std::make_shared<const std::vector<int32_t>>(ids);
  const std::vector<int32_t> prompt = {1, 2, 3, 30};
  constexpr int kCases = 3000;
  int excused = 0, moved_far = 0;
  for (int i = 0; i < kCases; ++i) {
    const core::SamplingOptions options = RandomOptions(random);
    const std::vector<float> logits = RandomLogits(random);
    core::Sampler sampler(options, all, prompt);
    const int32_t first = *sampler.Sample(RandomLogits(random), 4);
    core::Sampler same = sampler;
    core::Sampler far = sampler;
    const double margin = SamplingMargin(options, logits, prompt, {first});
    excused += margin <= 2e-5;
    std::vector<float> moved = logits, moved_a_lot = logits;
    for (float& logit : moved) logit += static_cast<float>((2 * Fraction(random) - 1) * std::min(margin, 1.0) / 4);
    for (float& logit : moved_a_lot)
      logit += static_cast<float>((2 * Fraction(random) - 1) * std::min(margin, 1.0) * 20);
    const int32_t chosen = *sampler.Sample(logits, 5);
    EXPECT_EQ(*same.Sample(moved, 5), chosen) << "margin " << margin;
    moved_far += *far.Sample(moved_a_lot, 5) != chosen;
  }
  EXPECT_LT(excused, kCases / 100);
  EXPECT_GT(moved_far, kCases / 4);
}

}  // namespace longshort::sampling_margin_test
