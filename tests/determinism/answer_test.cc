#include "tests/determinism/answer.h"

#include <cmath>

#include "gtest/gtest.h"

namespace longshort::answer_test {

Answer SomeAnswer() {
  Answer answer;
  answer.given = {{.token = 4, .log_probability = -1.5f, .alternatives = {{2, -0.5f}, {4, -1.5f}}}};
  answer.generated = {{.token = 7, .log_probability = -2.5f, .alternatives = {{7, -2.5f}}},
                      {.token = 8, .log_probability = -3.5f, .alternatives = {{8, -3.5f}}}};
  answer.total_log_probability = -1.5;
  return answer;
}

TEST(CompareAnswers, FindsEveryDifference) {
  const Answer alone = SomeAnswer();
  EXPECT_TRUE(Compare(alone, alone).identical);
  EXPECT_EQ(Compare(alone, alone).largest, 0);

  Answer mixed = alone;
  mixed.given[0].alternatives[0].log_probability = std::nextafter(-0.5f, 0.0f);
  EXPECT_FALSE(Compare(alone, mixed).identical);
  EXPECT_NEAR(Compare(alone, mixed).largest, 3e-8, 1e-8);
  mixed = alone;
  mixed.generated[1].log_probability += 1;
  EXPECT_EQ(Compare(alone, mixed).largest, 1);
  mixed = alone;
  mixed.total_log_probability = -1.75;
  EXPECT_EQ(Compare(alone, mixed).largest, 0.25);
  mixed = alone;
  mixed.generated[0].log_probability = NAN;
  EXPECT_TRUE(std::isinf(Compare(alone, mixed).largest));
  mixed = alone;
  mixed.given.clear();
  EXPECT_TRUE(std::isinf(Compare(alone, mixed).largest));
  mixed = alone;
  mixed.given[0].token = 5;
  EXPECT_TRUE(std::isinf(Compare(alone, mixed).largest));
  mixed = alone;
  mixed.generated.pop_back();
  EXPECT_TRUE(std::isinf(Compare(alone, mixed).largest));
  EXPECT_TRUE(std::isinf(CompareLogits({1.0f, 2.0f}, {1.0f}).largest));
  EXPECT_EQ(CompareLogits({1.0f, 2.0f}, {1.0f, 2.5f}).largest, 0.5);
}

TEST(CompareAnswers, NothingBehindAnotherTokenIsCompared) {
  Answer mixed = SomeAnswer();
  mixed.generated[0].token = 6;
  mixed.generated[1].log_probability = -9;
  const Difference difference = Compare(SomeAnswer(), mixed);
  EXPECT_EQ(difference.first_other_token, 0u);
  EXPECT_FALSE(difference.identical);
  EXPECT_EQ(difference.largest, 0);
}

TEST(CompareAnswers, OfAnAnswerThatEndedEarlyWhatThereIsIsCompared) {
  Answer mixed = SomeAnswer();
  mixed.status = absl::CancelledError("");
  mixed.given.clear();
  mixed.total_log_probability.reset();
  mixed.generated.pop_back();
  EXPECT_TRUE(Compare(SomeAnswer(), mixed).identical);
  mixed.generated[0].log_probability += 1;
  EXPECT_EQ(Compare(SomeAnswer(), mixed).largest, 1);
}

}  // namespace longshort::answer_test
