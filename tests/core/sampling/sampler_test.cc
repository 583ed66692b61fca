#include "core/sampling/sampler.h"

#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::sampling_sampler_test {

SampleableTokens AllOf(int64_t vocabulary_size) {
  std::vector<int32_t> tokens(vocabulary_size);
  std::iota(tokens.begin(), tokens.end(), 0);
  return std::make_shared<const std::vector<int32_t>>(std::move(tokens));
}

SamplingOptions Greedy() {
  SamplingOptions options;
  options.temperature = 0;
  return options;
}

// The logits that give these probabilities.
std::vector<float> LogitsOf(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (double probability : probabilities) logits.push_back(static_cast<float>(std::log(probability)));
  return logits;
}

// How often each token is drawn in `draws` draws at different positions, penalties aside.
std::map<int32_t, double> Frequencies(SamplingOptions options, const std::vector<float>& logits, int draws = 20000) {
  Sampler sampler(options, AllOf(static_cast<int64_t>(logits.size())), {});
  std::map<int32_t, double> frequencies;
  for (int position = 0; position < draws; ++position) {
    const auto token = sampler.Sample(logits, position);
    EXPECT_TRUE(token.ok()) << token.status();
    frequencies[token.value_or(-1)] += 1.0 / draws;
  }
  return frequencies;
}

// With 20,000 draws a frequency deviates by 0.0035 at most (one sigma); 0.015 is over four.
constexpr double kTolerance = 0.015;

TEST(Sampler, GreedyTakesTheLikeliestAndOfEqualsTheLowestId) {
  Sampler sampler(Greedy(), AllOf(4), {});
  const std::vector<float> logits = {1, 5, 5, 2};
  EXPECT_EQ(*sampler.Sample(logits, 0), 1);
}

TEST(Sampler, TakesOnlySampleableTokens) {
  const auto sampleable = std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{2, 4});
  const std::vector<float> logits = {9, 9, 1, 9, 2};
  Sampler greedy(Greedy(), sampleable, {});
  EXPECT_EQ(*greedy.Sample(logits, 0), 4);
  Sampler random(SamplingOptions(), sampleable, {});
  for (int position = 0; position < 200; ++position) {
    EXPECT_THAT(*random.Sample(logits, position), testing::AnyOf(2, 4));
  }
}

TEST(Sampler, DrawsInProportionToTheProbabilities) {
  const auto frequencies = Frequencies(SamplingOptions(), LogitsOf({0.1, 0.2, 0.3, 0.4}));
  EXPECT_NEAR(frequencies.at(0), 0.1, kTolerance);
  EXPECT_NEAR(frequencies.at(1), 0.2, kTolerance);
  EXPECT_NEAR(frequencies.at(2), 0.3, kTolerance);
  EXPECT_NEAR(frequencies.at(3), 0.4, kTolerance);
}

TEST(Sampler, DrawsByAscendingIdWithTheUniformNumberOfThePosition) {
  SamplingOptions options;
  options.seed = 5;
  options.completion = 2;
  Sampler sampler(options, AllOf(4), {});
  for (int64_t position = 0; position < 100; ++position) {
    const auto expected = static_cast<int32_t>(UniformAt(5, position, 2) * 4);
    EXPECT_EQ(*sampler.Sample(std::vector<float>(4, 1.0f), position), expected);
  }
}

TEST(Sampler, DependsOnThePositionAndNotOnEarlierDraws) {
  const std::vector<float> logits(16, 0.0f);
  Sampler from_the_start(SamplingOptions(), AllOf(16), {});
  Sampler later(SamplingOptions(), AllOf(16), {});
  int32_t at_nine = 0;
  for (int64_t position = 0; position < 10; ++position) at_nine = *from_the_start.Sample(logits, position);
  EXPECT_EQ(*later.Sample(logits, 9), at_nine);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  SamplingOptions sharp;
  sharp.temperature = 0.5;  // squares probabilities: 0.04 and 0.64, so 1/17 and 16/17
  EXPECT_NEAR(Frequencies(sharp, LogitsOf({0.2, 0.8})).at(0), 1.0 / 17, kTolerance);
  SamplingOptions flat;
  flat.temperature = 2;  // roots of probabilities: 1 and 2 parts
  EXPECT_NEAR(Frequencies(flat, LogitsOf({0.2, 0.8})).at(0), 1.0 / 3, kTolerance);
}

TEST(Sampler, TheLeastTemperatureIsGreedy) {
  SamplingOptions options;
  options.temperature = std::numeric_limits<double>::denorm_min();
  Sampler sampler(options, AllOf(3), {});
  for (int position = 0; position < 50; ++position) {
    EXPECT_EQ(*sampler.Sample(std::vector<float>{1.0f, 1.5f, -1.0f}, position), 1);
  }
}

TEST(Sampler, TopKKeepsTheLikeliestAndOfEqualsTheLowestIds) {
  SamplingOptions options;
  options.top_k = 2;
  const auto frequencies = Frequencies(options, LogitsOf({0.2, 0.1, 0.3, 0.2, 0.2}));
  EXPECT_EQ(frequencies.size(), 2u);
  EXPECT_NEAR(frequencies.at(0), 0.4, kTolerance);
  EXPECT_NEAR(frequencies.at(2), 0.6, kTolerance);
}

TEST(Sampler, TopKBeyondTheVocabularyKeepsAll) {
  SamplingOptions options;
  options.top_k = 100;
  EXPECT_EQ(Frequencies(options, LogitsOf({0.25, 0.25, 0.5})).size(), 3u);
}

TEST(Sampler, TopPKeepsTheFewestThatReachTheSum) {
  const std::vector<float> logits = LogitsOf({0.1, 0.4, 0.2, 0.3});
  SamplingOptions options;
  options.top_p = 0.65;  // 0.4 + 0.3 reach it
  const auto frequencies = Frequencies(options, logits);
  EXPECT_EQ(frequencies.size(), 2u);
  EXPECT_NEAR(frequencies.at(1), 4.0 / 7, kTolerance);
  options.top_p = 0.75;  // 0.2 more is needed
  EXPECT_EQ(Frequencies(options, logits).size(), 3u);
}

TEST(Sampler, TopPKeepsAtLeastOne) {
  SamplingOptions options;
  options.top_p = 1e-300;
  const auto frequencies = Frequencies(options, LogitsOf({0.3, 0.3, 0.4}), 200);
  EXPECT_THAT(frequencies, testing::ElementsAre(testing::Key(2)));
}

TEST(Sampler, TopPIsOfWhatTopKKept) {
  SamplingOptions options;
  options.top_k = 2;    // 0.4 and 0.3, that is 4/7 and 3/7
  options.top_p = 0.5;  // of all, 0.4 would not reach it
  EXPECT_EQ(Frequencies(options, LogitsOf({0.1, 0.4, 0.2, 0.3}), 200).size(), 1u);
}

TEST(Sampler, MinPKeepsWhatIsLikelyEnoughBesideTheLikeliest) {
  SamplingOptions options;
  options.min_p = 0.45;
  const auto frequencies = Frequencies(options, LogitsOf({0.1, 0.4, 0.2, 0.3}));  // at least 0.18
  EXPECT_THAT(frequencies, testing::ElementsAre(testing::Key(1), testing::Key(2), testing::Key(3)));
  options.min_p = 1;
  EXPECT_EQ(Frequencies(options, LogitsOf({0.1, 0.4, 0.2, 0.3}), 200).size(), 1u);
}

TEST(Sampler, LogitBiasIsAdded) {
  SamplingOptions options = Greedy();
  options.logit_bias = {{0, 3.5f}, {1, -100.0f}};
  Sampler sampler(options, AllOf(3), {});
  EXPECT_EQ(*sampler.Sample(std::vector<float>{1, 9, 4}, 0), 0);
}

TEST(Sampler, RepetitionPenaltyWeakensTokensOfThePromptWhateverTheirSign) {
  SamplingOptions options = Greedy();
  options.repetition_penalty = 2;
  const std::vector<int32_t> prompt = {0};
  EXPECT_EQ(*Sampler(options, AllOf(2), prompt).Sample(std::vector<float>{4, 2.5f}, 1), 1);    // 2 < 2.5
  EXPECT_EQ(*Sampler(options, AllOf(2), prompt).Sample(std::vector<float>{-2, -3.5f}, 1), 1);  // -4 < -3.5
  EXPECT_EQ(*Sampler(options, AllOf(2), prompt).Sample(std::vector<float>{4, 1.5f}, 1), 0);    // 2 > 1.5
}

TEST(Sampler, RepetitionPenaltyWeakensGeneratedTokensOnce) {
  SamplingOptions options = Greedy();
  options.repetition_penalty = 2;
  Sampler sampler(options, AllOf(2), {});
  const std::vector<float> logits = {4, 1.5f};
  EXPECT_EQ(*sampler.Sample(logits, 0), 0);
  EXPECT_EQ(*sampler.Sample(logits, 1), 0);  // 2
  EXPECT_EQ(*sampler.Sample(logits, 2), 0);  // 2 again
}

TEST(Sampler, FrequencyPenaltyGrowsWithEachGenerationAndIgnoresThePrompt) {
  SamplingOptions options = Greedy();
  options.frequency_penalty = 1;
  Sampler sampler(options, AllOf(2), std::vector<int32_t>{0, 0, 0, 0});
  const std::vector<float> logits = {4, 1.5f};
  std::vector<int32_t> tokens;
  for (int position = 0; position < 5; ++position) tokens.push_back(*sampler.Sample(logits, position));
  EXPECT_THAT(tokens, testing::ElementsAre(0, 0, 0, 1, 0));  // 4, 3, 2, 1 < 1.5, 1 > 0.5
}

TEST(Sampler, PresencePenaltyCountsOnce) {
  SamplingOptions options = Greedy();
  options.presence_penalty = 2;
  Sampler sampler(options, AllOf(2), std::vector<int32_t>{0});
  const std::vector<float> logits = {4, 1.5f};
  for (int position = 0; position < 5; ++position) EXPECT_EQ(*sampler.Sample(logits, position), 0);  // 4, then 2
}

TEST(Sampler, AppliesBiasBeforeRepetitionBeforeFrequency) {
  SamplingOptions options = Greedy();
  options.logit_bias = {{0, 4.0f}};
  options.repetition_penalty = 2;
  options.frequency_penalty = 1;
  Sampler sampler(options, AllOf(2), std::vector<int32_t>{0});
  EXPECT_EQ(*sampler.Sample(std::vector<float>{2, 2.9f}, 0), 0);  // (2 + 4) / 2 = 3
  EXPECT_EQ(*sampler.Sample(std::vector<float>{2, 1.9f}, 1), 0);  // (2 + 4) / 2 - 1 = 2; in another order 1.5 or 2.5
  EXPECT_EQ(*sampler.Sample(std::vector<float>{2, 1.1f}, 2), 1);  // (2 + 4) / 2 - 2 = 1
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    for (double temperature : {0.0, 1.0}) {
      SamplingOptions options;
      options.temperature = temperature;
      Sampler sampler(options, AllOf(3), {});
      EXPECT_EQ(sampler.Sample(std::vector<float>{1, bad, 2}, 0).status().code(), absl::StatusCode::kInternal);
    }
  }
}

// Divided by so little, a logit is beyond every number; two such are equally likely, everything else is impossible.
TEST(Sampler, StandsTheSmallestRepetitionPenalty) {
  SamplingOptions options;
  options.repetition_penalty = std::numeric_limits<double>::denorm_min();
  options.top_p = 0.9;
  const std::vector<int32_t> prompt = {0, 1, 2};
  Sampler sampler(options, AllOf(4), prompt);
  const std::vector<float> logits = {-1, 2, 1, 3};
  std::map<int32_t, int> drawn;
  for (int position = 0; position < 100; ++position) ++drawn[*sampler.Sample(logits, position)];
  EXPECT_EQ(drawn.size(), 2);
  EXPECT_GT(drawn[1], 20);
  EXPECT_GT(drawn[2], 20);
}

TEST(Sampler, StandsTheWidestRangeOfLogits) {
  const float huge = std::numeric_limits<float>::max();
  EXPECT_THAT(Frequencies(SamplingOptions(), {-huge, huge, 0}, 100), testing::ElementsAre(testing::Key(1)));
  SamplingOptions cold;
  cold.temperature = 1e-300;
  cold.top_p = 0.9;
  cold.min_p = 0.1;
  EXPECT_THAT(Frequencies(cold, {-huge, huge, 0}, 100), testing::ElementsAre(testing::Key(1)));
}

// The vectors for philox4x32-10 that its authors publish with Random123 (kat_vectors).
TEST(Philox, GivesThePublishedWords) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformAt, IsTheFirst53BitsOfTheWords) {
  // From the first vector: words 1 and 0 are 0xe169c58d6627e8d5.
  EXPECT_EQ(UniformAt(0, 0, 0), static_cast<double>(0xe169c58d6627e8d5 >> 11) / std::pow(2.0, 53));
}

TEST(UniformAt, DiffersBySeedPositionAndCompletion) {
  const double draw = UniformAt(1, 2, 3);
  EXPECT_NE(draw, UniformAt(2, 2, 3));
  EXPECT_NE(draw, UniformAt(1 + (uint64_t{1} << 32), 2, 3));
  EXPECT_NE(draw, UniformAt(1, 3, 3));
  EXPECT_NE(draw, UniformAt(1, 2 + (uint64_t{1} << 32), 3));
  EXPECT_NE(draw, UniformAt(1, 2, 4));
}

// The mean of n uniform draws has the deviation 1/sqrt(12 n) = 0.0009 here; that of their squares, 2/sqrt(45 n) =
// 0.0009.
TEST(UniformAt, HasTheMomentsOfAUniformDraw) {
  const int draws = 100000;
  double sum = 0;
  double sum_of_squares = 0;
  for (int position = 0; position < draws; ++position) {
    const double draw = UniformAt(42, position, 0);
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 1);
    sum += draw;
    sum_of_squares += draw * draw;
  }
  EXPECT_NEAR(sum / draws, 1.0 / 2, 0.004);
  EXPECT_NEAR(sum_of_squares / draws, 1.0 / 3, 0.004);
}

}  // namespace longshort::core::sampling_sampler_test
