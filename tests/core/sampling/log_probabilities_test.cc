#include <cmath>
#include <limits>

#include "core/sampling/sampler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::log_probabilities_test {

std::vector<int32_t> Tokens(const std::vector<TokenLogProbability>& likeliest) {
  std::vector<int32_t> tokens;
  for (const TokenLogProbability& entry : likeliest) tokens.push_back(entry.token);
  return tokens;
}

TEST(LogProbabilities, AreTheLogSoftmaxOfTheLogits) {
  LogProbabilities log_probabilities;
  const std::vector<float> logits = {0.0f, static_cast<float>(std::log(2.0)), static_cast<float>(std::log(5.0))};
  ASSERT_TRUE(log_probabilities.SetRow(logits).ok());
  EXPECT_NEAR(log_probabilities.Of(0), std::log(1.0 / 8), 1e-7);
  EXPECT_NEAR(log_probabilities.Of(1), std::log(2.0 / 8), 1e-7);
  EXPECT_NEAR(log_probabilities.Of(2), std::log(5.0 / 8), 1e-7);
}

TEST(LogProbabilities, StandHugeLogits) {
  LogProbabilities log_probabilities;
  const std::vector<float> logits = {3e38f, -3e38f, 3e38f};
  ASSERT_TRUE(log_probabilities.SetRow(logits).ok());
  EXPECT_NEAR(log_probabilities.Of(0), std::log(0.5), 1e-12);
  EXPECT_NEAR(log_probabilities.Of(1), -6e38, 1e32);
}

// Adding 2^20 ones in single precision to 2^24 would lose every one of them.
TEST(LogProbabilities, SumInDoublePrecision) {
  const int tokens = 1 << 20;
  std::vector<float> logits(tokens, 0.0f);
  logits[0] = static_cast<float>(24 * std::log(2.0));
  LogProbabilities log_probabilities;
  ASSERT_TRUE(log_probabilities.SetRow(logits).ok());
  const double sum = std::exp(static_cast<double>(logits[0])) + tokens - 1;
  EXPECT_NEAR(log_probabilities.Of(1), -std::log(sum), 1e-9);  // without the ones, it would be off by 0.06
}

TEST(LogProbabilities, NameTheLikeliestFirstAndOfEqualsTheLowestId) {
  LogProbabilities log_probabilities;
  const std::vector<float> logits = {1, 3, 2, 3, 2};
  ASSERT_TRUE(log_probabilities.SetRow(logits).ok());
  const auto likeliest = log_probabilities.Likeliest(4);
  EXPECT_THAT(Tokens(likeliest), testing::ElementsAre(1, 3, 2, 4));
  EXPECT_FLOAT_EQ(likeliest[2].log_probability, static_cast<float>(log_probabilities.Of(2)));
}

TEST(LogProbabilities, OfAnEmptyRowNameNothing) {
  LogProbabilities log_probabilities;
  ASSERT_TRUE(log_probabilities.SetRow(std::vector<float>(100, 1.0F)).ok());
  ASSERT_TRUE(log_probabilities.SetRow({}).ok());
  EXPECT_TRUE(log_probabilities.Likeliest(5).empty());
}

TEST(LogProbabilities, NameAllTokensIfMoreAreRequested) {
  LogProbabilities log_probabilities;
  const std::vector<float> logits = {1, 2};
  ASSERT_TRUE(log_probabilities.SetRow(logits).ok());
  EXPECT_THAT(Tokens(log_probabilities.Likeliest(20)), testing::ElementsAre(1, 0));
  EXPECT_TRUE(log_probabilities.Likeliest(0).empty());
}

TEST(LogProbabilities, RefuseLogitsThatAreNotFinite) {
  LogProbabilities log_probabilities;
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                    -std::numeric_limits<float>::infinity()}) {
    const std::vector<float> logits = {1, bad};
    EXPECT_EQ(log_probabilities.SetRow(logits).code(), absl::StatusCode::kInternal);
  }
  const std::vector<float> logits = {1, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(log_probabilities.SetRow(logits).message(), "the model returned the logit inf for token 1");
}

}  // namespace longshort::core::log_probabilities_test
