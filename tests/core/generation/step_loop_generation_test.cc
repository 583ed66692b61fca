// One generation, as StepLoop and GenerationJob run it.

#include <algorithm>

#include "core/requests/language_model_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/live_heap.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_generation_test {

using testing::ElementsAre;

TEST(Generation, FollowsTheWholeHistoryThroughSegmentsAndRings) {
  StepLoopHarness harness;
  const GenerationRequest request = SomeGeneration(50, 400);
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  ASSERT_TRUE(listener->status.ok()) << listener->status;
  EXPECT_EQ(listener->tokens, harness.TokensAlone(request));
  EXPECT_EQ(listener->bytes, harness.TextOf(listener->tokens));
  EXPECT_EQ(listener->summary.finish_reason, FinishReason::kMaxTokens);
  EXPECT_EQ(listener->summary.prompt_tokens, 50);
  EXPECT_EQ(listener->summary.generated_tokens, 400);
}

TEST(Generation, DoesNotDependOnHowThePromptIsCut) {
  const GenerationRequest request = SomeGeneration(333, 5);
  std::vector<int32_t> expected;
  for (int64_t rows : {1, 3, 4, 7, 64, 100, 1000}) {
    StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = rows}});
    const auto listener = harness.Generate(request);
    harness.RunToEnd();
    if (expected.empty()) expected = harness.TokensAlone(request);
    EXPECT_EQ(listener->tokens, expected) << rows << " rows a step";
  }
}

TEST(Generation, CutsThePromptAtChunkEnds) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 10}});  // C = 4
  std::vector<int64_t> pieces;
  harness.model.on_step = [&pieces](absl::Span<const models::Slice> slices) {
    pieces.push_back(static_cast<int64_t>(slices[0].tokens.size()));
    return absl::OkStatus();
  };
  harness.Generate(SomeGeneration(25, 2));
  harness.RunToEnd();
  EXPECT_THAT(pieces, ElementsAre(8, 8, 9, 1));
}

TEST(Generation, NeverReadsTheTokenItSampledLast) {
  StepLoopHarness harness;
  harness.Generate(SomeGeneration(3, 1));
  harness.RunToEnd();
  ASSERT_EQ(harness.observer.steps.size(), 1u);
  EXPECT_EQ(harness.observer.steps[0].second, 3);
}

TEST(Generation, AsksForLogitsOfTheLastPromptTokenOnly) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 8}});
  std::vector<int64_t> logit_rows;
  harness.model.on_step = [&logit_rows](absl::Span<const models::Slice> slices) {
    logit_rows.push_back(slices[0].logit_rows);
    return absl::OkStatus();
  };
  harness.Generate(SomeGeneration(17, 3));
  harness.RunToEnd();
  EXPECT_THAT(logit_rows, ElementsAre(0, 0, 1, 1, 1));
}

TEST(Generation, DeliversEachTokenInTheStepThatSampledIt) {
  StepLoopHarness harness;
  const auto listener = harness.Generate(SomeGeneration(5, 4));
  for (size_t step = 1; step <= 4; ++step) {
    harness.loop->RunOnce();
    EXPECT_EQ(listener->deltas.size(), step);
  }
  EXPECT_TRUE(listener->end.ended());
}

TEST(Generation, SamplesOnlyWhatTheTokenizerCanProduce) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(5, 300);
  request.sampling.temperature = 100;  // nearly uniform
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(listener->tokens.size(), 300u);
  for (int32_t token : listener->tokens) EXPECT_FALSE(harness.vocabulary.Decode(token).empty());
  EXPECT_THAT(listener->tokens, testing::Contains(2));  // the newline is text like any other
}

TEST(Generation, ReportsTheRawModelsLogProbabilitiesWhateverTheSamplingOptions) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(30, 60);
  request.log_probabilities = true;
  request.top_alternatives = 3;
  request.sampling.temperature = 0.5;
  request.sampling.repetition_penalty = 1.5;
  request.sampling.logit_bias = {{5, 2.0f}};
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  ASSERT_EQ(listener->generated.size(), 60u);
  std::vector<int32_t> history = request.prompt;
  for (const GeneratedToken& token : listener->generated) {
    history.push_back(token.token);
    EXPECT_EQ(token.log_probability, harness.LogProbabilityAlone(history, static_cast<int64_t>(history.size()) - 1));
    ASSERT_EQ(token.alternatives.size(), 3u);
    EXPECT_GE(token.alternatives[0].log_probability, token.alternatives[1].log_probability);
    EXPECT_GE(token.alternatives[0].log_probability, token.log_probability);
  }
}

TEST(Generation, ScoresThePromptAcrossPieces) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 6}});
  GenerationRequest request = SomeGeneration(40, 3);
  request.prompt_log_probabilities = true;
  request.top_alternatives = 2;
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  ASSERT_TRUE(listener->prompt.has_value());
  ASSERT_EQ(listener->prompt->size(), 39u);
  for (int64_t i = 0; i < 39; ++i) {
    EXPECT_EQ((*listener->prompt)[i].token, request.prompt[i + 1]);
    EXPECT_EQ((*listener->prompt)[i].log_probability, harness.LogProbabilityAlone(request.prompt, i + 1));
    EXPECT_EQ((*listener->prompt)[i].alternatives.size(), 2u);
  }
  EXPECT_EQ(listener->tokens, harness.TokensAlone(request));
}

TEST(Generation, HasNothingToScoreInAPromptOfOneToken) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(1, 2);
  request.prompt_log_probabilities = true;
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  ASSERT_TRUE(listener->prompt.has_value());
  EXPECT_TRUE(listener->prompt->empty());
  EXPECT_EQ(listener->tokens.size(), 2u);
}

TEST(Generation, WithoutATokenizerSamplesAllIdsAndHasNoText) {
  StepLoopHarness harness;
  harness.vocabulary = *Vocabulary::Make(16, nullptr);
  GenerationRequest request = SomeGeneration(5, 200);
  request.sampling.temperature = 100;
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(listener->tokens, harness.TokensAlone(request));
  EXPECT_THAT(listener->tokens, testing::Contains(15));
  EXPECT_EQ(listener->bytes, "");
}

TEST(Generation, EndsWithAStopStringThatIsNotDelivered) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(5, 100);
  const std::string text = harness.TextOf(harness.TokensAlone(request));
  request.stop_strings = {"not generated", text.substr(20, 5)};
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(listener->summary.finish_reason, FinishReason::kStopString);
  EXPECT_EQ(listener->summary.stop_string, text.substr(20, 5));
  EXPECT_EQ(listener->bytes, text.substr(0, text.find(text.substr(20, 5))));
}

TEST(Generation, DeliversHeldTextWhenTheTokensAreUsedUp) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(5, 30);
  const std::string text = harness.TextOf(harness.TokensAlone(request));
  request.stop_strings = {text.substr(text.size() - 6) + "?"};  // the last six bytes could begin it
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(listener->summary.finish_reason, FinishReason::kMaxTokens);
  EXPECT_EQ(listener->bytes, text);
  EXPECT_EQ(listener->tokens.size(), 30u);
}

TEST(Generation, RepeatsWithTheSameSeedAndDiffersByCompletion) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(5, 40, 9);
  const auto first = harness.Generate(request);
  const auto second = harness.Generate(request);
  request.sampling.completion = 1;
  const auto other = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(first->tokens, second->tokens);
  EXPECT_NE(first->tokens, other->tokens);
}

// One second in the queue, then steps of 10 ms: three to read the prompt, the last of which gives the first token.
TEST(Generation, ReportsWhereItsTimeWent) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 8}});
  harness.model.on_step = [&harness](absl::Span<const models::Slice>) {
    harness.clock.Advance(absl::Milliseconds(10));
    return absl::OkStatus();
  };
  const auto listener = harness.Generate(SomeGeneration(24, 5));
  harness.clock.Advance(absl::Seconds(1));
  harness.RunToEnd();
  EXPECT_EQ(listener->summary.timings.queue, absl::Seconds(1));
  EXPECT_EQ(listener->summary.timings.prefill, absl::Milliseconds(30));
  EXPECT_EQ(listener->summary.timings.decode, absl::Milliseconds(40));
  EXPECT_THAT(harness.observer.queued, ElementsAre(absl::Seconds(1)));
  EXPECT_THAT(harness.observer.prefilled, ElementsAre(testing::Pair(absl::Milliseconds(30), 24)));
  EXPECT_THAT(harness.observer.first_tokens, ElementsAre(absl::Milliseconds(1030)));
  EXPECT_EQ(harness.observer.next_tokens, std::vector<absl::Duration>(4, absl::Milliseconds(10)));
  EXPECT_EQ(harness.observer.steps.size(), 7u);
  EXPECT_THAT(harness.observer.steps, testing::Contains(testing::Pair(absl::Milliseconds(10), 8)));
}

TEST(GenerationJob, HoldsNothingOfTheVocabularysSizeWhileItWaits) {
  const Vocabulary vocabulary = *Vocabulary::Make(int64_t{1} << 20, nullptr);
  RecordingObserver observer;
  const int64_t before = LiveHeapBytes();
  const GenerationJob job(SomeGeneration(10, 5), std::make_shared<RecordingGenerationListener>(), vocabulary, observer);
  EXPECT_LT(LiveHeapBytes() - before, vocabulary.size);
}

}  // namespace longshort::core::step_loop_generation_test
