// One scoring, as StepLoop and ScoringJob run it.

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_scoring_test {

TEST(Scoring, SumsTheLogProbabilitiesOfAllTokensButTheFirst) {
  StepLoopHarness harness;
  const ScoringRequest request = SomeScoring(300);
  const auto listener = harness.Score(request);
  harness.RunToEnd();
  ASSERT_TRUE(listener->score.ok()) << listener->score.status();
  EXPECT_EQ(listener->score->scored_tokens, 299);
  double expected = 0;
  for (int64_t i = 1; i < 300; ++i) expected += harness.LogProbabilityAlone(request.tokens, i);
  EXPECT_NEAR(listener->score->total_log_probability, expected, 299 * 5e-7);  // expected sums numbers rounded to float
  EXPECT_TRUE(listener->score->tokens.empty());
}

TEST(Scoring, DoesNotDependOnHowTheDocumentIsCut) {
  ScoringRequest request = SomeScoring(217);
  request.log_probabilities = true;
  request.top_alternatives = 2;
  std::vector<double> totals;
  for (int64_t rows : {1, 3, 4, 7, 64, 100, 1000}) {
    StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = rows}});
    const auto listener = harness.Score(request);
    harness.RunToEnd();
    ASSERT_TRUE(listener->score.ok());
    ASSERT_EQ(listener->score->tokens.size(), 216u);
    for (int64_t i = 0; i < 216; ++i) {
      EXPECT_EQ(listener->score->tokens[i].token, request.tokens[i + 1]);
      EXPECT_EQ(listener->score->tokens[i].log_probability, harness.LogProbabilityAlone(request.tokens, i + 1));
      EXPECT_EQ(listener->score->tokens[i].alternatives.size(), 2u);
    }
    totals.push_back(listener->score->total_log_probability);
  }
  EXPECT_THAT(totals, testing::Each(totals.front()));
}

TEST(Scoring, OfOneTokenIsEmptyAndCostsNoStepButIsCounted) {
  StepLoopHarness harness;
  const auto listener = harness.Score(SomeScoring(1));
  harness.RunToEnd();
  ASSERT_TRUE(listener->score.ok());
  EXPECT_EQ(listener->score->scored_tokens, 0);
  EXPECT_EQ(listener->score->total_log_probability, 0);
  EXPECT_TRUE(harness.observer.steps.empty());
  EXPECT_THAT(harness.observer.prefilled, testing::ElementsAre(testing::Pair(absl::ZeroDuration(), 1)));
}

TEST(Scoring, NeverHoldsMoreLogitsThanAStepHasRows) {
  StepLoopHarness harness({.max_streams = 4, .steps = {.max_rows = 16}});
  size_t max = 0;
  harness.model.on_logits = [&max](std::vector<float>& logits) { max = std::max(max, logits.size()); };
  for (uint32_t seed = 0; seed < 6; ++seed) harness.Score(SomeScoring(100, seed));
  harness.RunToEnd();
  EXPECT_EQ(max, 16u * 16u);  // rows * V
}

TEST(Scoring, ReportsWhereItsTimeWent) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 8}});
  harness.model.on_step = [&harness](absl::Span<const models::Slice>) {
    harness.clock.Advance(absl::Milliseconds(10));
    return absl::OkStatus();
  };
  const auto listener = harness.Score(SomeScoring(17));
  harness.clock.Advance(absl::Seconds(1));
  harness.RunToEnd();
  ASSERT_TRUE(listener->score.ok());
  EXPECT_EQ(listener->score->timings.queue, absl::Seconds(1));
  EXPECT_EQ(listener->score->timings.prefill, absl::Milliseconds(20));
  EXPECT_EQ(listener->score->timings.decode, absl::ZeroDuration());
  // The last of 17 tokens is not read, and a step has 8 rows.
  const std::vector<PromptPiece>& pieces = listener->score->timings.prompt_pieces;
  ASSERT_EQ(pieces.size(), 2);
  EXPECT_EQ(pieces[0].begin, listener->score->timings.submitted + absl::Seconds(1));
  EXPECT_EQ(pieces[1].begin, pieces[0].end);
  EXPECT_EQ(pieces[1].end - pieces[1].begin, absl::Milliseconds(10));
  EXPECT_EQ(pieces[0].tokens, 8);
  EXPECT_EQ(pieces[1].steps, 1);
  EXPECT_THAT(harness.observer.prefilled, testing::ElementsAre(testing::Pair(absl::Milliseconds(20), 17)));
}

}  // namespace longshort::core::step_loop_scoring_test
