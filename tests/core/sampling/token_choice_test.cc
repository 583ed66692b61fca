#include "core/sampling/token_choice.h"

#include <cmath>
#include <numeric>
#include <random>

#include "core/sampling/row_passes.h"
#include "core/sampling/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/sampling/plain_sampler.h"

namespace longshort::core::token_choice_test {

SampleableTokens Tokens(std::vector<int32_t> tokens) {
  return std::make_shared<const std::vector<int32_t>>(std::move(tokens));
}

SampleableTokens AllOf(int64_t size) {
  std::vector<int32_t> tokens(size);
  std::iota(tokens.begin(), tokens.end(), 0);
  return Tokens(std::move(tokens));
}

// Rows with many likely tokens, with few, and with many equal ones, as bfloat16 has them.
std::vector<float> RandomRow(int64_t size, std::mt19937& random) {
  const double spread = std::array{0.3, 1.5, 4.0, 12.0}[random() % 4];
  std::normal_distribution<double> logit(0, spread);
  const bool coarse = random() % 2 == 0;
  std::vector<float> row(size);
  for (float& x : row) x = static_cast<float>(coarse ? std::round(logit(random) * 8) / 8 : logit(random));
  return row;
}

SamplingOptions RandomOptions(int64_t size, std::mt19937& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  SamplingOptions options;
  options.temperature = std::array{0.0, 0.2, 0.7, 1.0, 3.0}[random() % 5];
  if (random() % 2 == 0) options.top_k = 1 + static_cast<int64_t>(random() % (random() % 2 == 0 ? 60 : 2 * size));
  if (random() % 2 == 0) options.top_p = 1 - std::pow(unit(random), 3);
  if (random() % 3 == 0) options.min_p = std::pow(unit(random), 4);
  options.seed = random();
  return options;
}

std::vector<const RowPasses*> AllPasses() {
  std::vector<const RowPasses*> all = {&baseline::kRowPasses};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&avx2::kRowPasses);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) all.push_back(&avx512::kRowPasses);
  return all;
}

TEST(TokenChoice, TakesTheTokenThatSortingTheRowLeadsToWithEachInstructionSet) {
  std::mt19937 random(1);
  std::vector<TokenChoice> choices;
  for (const RowPasses* passes : AllPasses()) choices.emplace_back(*passes);
  for (int round = 0; round < 600; ++round) {
    const auto size = static_cast<int64_t>(1 + random() % (round % 20 == 0 ? 40000 : 700));
    const std::vector<float> row = RandomRow(size, random);
    const std::vector<double> in_double(row.begin(), row.end());
    const SamplingOptions options = RandomOptions(size, random);
    PlainSampler plain(options, AllOf(size), size, {});
    for (int64_t position = 0; position < 5; ++position) {
      const int32_t expected = plain.Sample(row, position);
      const double uniform = UniformAt(options.seed, position, 0);
      for (TokenChoice& choice : choices) {
        const auto choose = [&](auto numbers) {
          return options.temperature == 0 ? choice.Likeliest(numbers) : choice.Draw(numbers, size, options, uniform);
        };
        ASSERT_EQ(choose(absl::MakeConstSpan(row)), expected) << "round " << round << ", " << plain.kept() << " kept";
        ASSERT_EQ(choose(absl::MakeConstSpan(in_double)), expected) << "round " << round;
      }
    }
  }
}

TEST(Sampler, TakesTheTokensOfThePlainSamplerWithBiasAndPenalties) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const auto size = static_cast<int64_t>(2 + random() % 500);
    std::vector<int32_t> sampleable;
    for (int32_t token = 0; token < size; ++token) {
      if (round % 3 == 0 || random() % 8 != 0) sampleable.push_back(token);
    }
    if (sampleable.empty()) continue;
    SamplingOptions options = RandomOptions(size, random);
    if (random() % 2 == 0) options.repetition_penalty = 0.5 + static_cast<double>(random() % 4) / 2;
    if (random() % 2 == 0) options.frequency_penalty = 0.3;
    if (random() % 2 == 0) options.presence_penalty = -0.4;
    if (random() % 2 == 0) options.logit_bias = {{random() % size, 3.0f}};
    const std::vector<int32_t> prompt = {static_cast<int32_t>(random() % size), static_cast<int32_t>(random() % size)};
    PlainSampler plain(options, Tokens(sampleable), size, prompt);
    Sampler sampler(options, Tokens(sampleable), prompt);
    for (int64_t position = 0; position < 20; ++position) {
      const std::vector<float> row = RandomRow(size, random);
      ASSERT_EQ(*sampler.Sample(row, position), plain.Sample(row, position)) << "round " << round;
    }
  }
}

TEST(TokenChoice, FindsTheLargestOfRowsThatASampleMisjudges) {
  constexpr int64_t kSize = 32'000;
  std::mt19937 random(4);
  std::vector<float> ascending(kSize), equal(kSize, 1), far_apart(kSize), odd(kSize, -1);
  std::iota(ascending.begin(), ascending.end(), 0.0f);
  for (float& x : far_apart) {
    x = static_cast<float>((random() % 2 == 0 ? 1 : -1) * std::pow(10, static_cast<double>(random() % 77) - 38));
  }
  // A sample of every 31st number sees none, or only ones, of these.
  for (int64_t i = 0; i < kSize; ++i) odd[i] += i % 31 == 0 ? 5 : static_cast<float>(i % 7) / 7;
  for (const std::vector<float>& row : {ascending, equal, far_apart, odd}) {
    for (const int64_t k : {501, 2000, 16'000, 31'999}) {
      SamplingOptions options;
      options.temperature = 1e300;  // all weights are 1
      options.top_k = k;
      PlainSampler plain(options, AllOf(kSize), kSize, {});
      Sampler sampler(options, AllOf(kSize), {});
      for (int64_t position = 0; position < 5; ++position) {
        ASSERT_EQ(*sampler.Sample(row, position), plain.Sample(row, position)) << k;
      }
      EXPECT_EQ(plain.kept(), k);
    }
  }
}

// At so high a temperature all weights are 1, so only the logits order the tokens.
TEST(TokenChoice, OrdersTokensOfEqualWeightByTheirLogits) {
  std::mt19937 random(3);
  const std::vector<float> row = RandomRow(3000, random);
  SamplingOptions options;
  options.temperature = 1e30;
  options.top_p = 0.3;
  PlainSampler plain(options, AllOf(3000), 3000, {});
  Sampler sampler(options, AllOf(3000), {});
  for (int64_t position = 0; position < 50; ++position) {
    EXPECT_EQ(*sampler.Sample(row, position), plain.Sample(row, position));
  }
  EXPECT_EQ(plain.kept(), 900);  // 0.3 of 3,000
}

TEST(RowPasses, WeightsAreThePowersOfE) {
  for (const RowPasses* passes : AllPasses()) {
    std::vector<double> row;
    for (double x = 0; x > kLeastExponent; x -= 0.37) row.push_back(x);
    const auto size = static_cast<int64_t>(row.size());
    std::vector<double> weights(RowBlocks(size) * kRowBlock), sums(RowBlocks(size));
    std::vector<double> largest(RowBlocks(size));
    passes->doubles.find_largest(row.data(), size, largest.data());
    passes->doubles.compute_weights(row.data(), size, largest.data(), {.largest = 0, .scale = 1, .cut = kLeastExponent},
                                    weights.data(), sums.data());
    EXPECT_EQ(weights[0], 1);
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_NEAR(weights[i] / std::exp(row[i]), 1, 1e-15 - 2e-16 * row[i]) << row[i];
    }
    for (size_t i = size; i < weights.size(); ++i) ASSERT_EQ(weights[i], 0);
    EXPECT_NEAR(sums[0], std::accumulate(weights.begin(), weights.begin() + kRowBlock, 0.0), 1e-14);
  }
}

TEST(RowPasses, FindEachLogitThatIsNotFinite) {
  for (const RowPasses* passes : AllPasses()) {
    std::vector<float> row(203, -3e38f);
    EXPECT_TRUE(passes->all_finite(row.data(), 203));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = i % 2 == 0 ? std::nanf("") : -INFINITY;
      EXPECT_FALSE(passes->all_finite(row.data(), 203)) << i;
      row[i] = 0;
    }
  }
}

}  // namespace longshort::core::token_choice_test
