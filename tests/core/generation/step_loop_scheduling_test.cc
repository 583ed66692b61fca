// Many requests in one StepLoop: who runs when, and how they end before their time.

#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_scheduling_test {

using testing::ElementsAre;

// How many tokens each sequence reads in each step.
using Pieces = std::vector<std::vector<int64_t>>;

void RecordPieces(StepLoopHarness& harness, Pieces& pieces) {
  harness.model.on_step = [&pieces](absl::Span<const models::Slice> slices) {
    pieces.emplace_back();
    for (const models::Slice& slice : slices) pieces.back().push_back(static_cast<int64_t>(slice.tokens.size()));
    return absl::OkStatus();
  };
}

TEST(StepLoopOptions, OutOfRangeAreRefusedByName) {
  FakeLanguageModel model;
  RequestQueue queue({.limits = {.max_queued = 1}});
  FakeClock clock;
  RecordingObserver observer;
  WorkerStates states(1, queue, observer);
  const auto no_streams = StepLoop::Create(model, queue, clock, states, {.max_streams = 0, .steps = {.max_rows = 1}});
  EXPECT_EQ(no_streams.status().message(), "max_streams is 0, must be at least 1");
  const auto no_rows = StepLoop::Create(model, queue, clock, states, {.steps = {.max_rows = 0}});
  EXPECT_EQ(no_rows.status().message(), "max_rows is 0, must be at least 1");
}

TEST(StepLoop, HasNothingToDoWithoutRequests) {
  StepLoopHarness harness;
  EXPECT_FALSE(harness.loop->RunOnce());
  EXPECT_TRUE(harness.observer.steps.empty());
}

//   step        1   2   3   4   5
//   A (8 + 4)   8   1   1   1
//   B (6 + 2)       6   1
//   C (5 + 2)               5   1
TEST(StepLoop, LetsStreamsJoinAndLeaveAtEveryStep) {
  StepLoopHarness harness;
  Pieces pieces;
  RecordPieces(harness, pieces);
  harness.Generate(SomeGeneration(8, 4));
  harness.loop->RunOnce();
  harness.Generate(SomeGeneration(6, 2, 1));
  harness.loop->RunOnce();
  harness.loop->RunOnce();
  harness.Generate(SomeGeneration(5, 2, 2));
  harness.RunToEnd();
  EXPECT_THAT(pieces,
              ElementsAre(ElementsAre(8), ElementsAre(1, 6), ElementsAre(1, 1), ElementsAre(1, 5), ElementsAre(1)));
}

// Twenty rows a step: one for the stream that decodes; of the 19 others one chunk of C = 4 for the first in order, and
// what then fits for those that end soonest.
TEST(StepLoop, ServesDecodingStreamsFirstAndSharesTheRestAmongPrompts) {
  StepLoopHarness harness({.max_streams = 4, .steps = {.max_rows = 20}});
  Pieces pieces;
  RecordPieces(harness, pieces);
  harness.Generate(SomeGeneration(4, 4));
  harness.loop->RunOnce();
  harness.Score(SomeScoring(102, 3));
  harness.Generate(SomeGeneration(100, 1, 1));
  harness.Generate(SomeGeneration(6, 1, 2));
  harness.loop->RunOnce();
  harness.loop->RunOnce();
  EXPECT_THAT(pieces, ElementsAre(ElementsAre(4),           //
                                  ElementsAre(1, 12, 6),    // 4 in order, 6 to the end, 8 more
                                  ElementsAre(1, 12, 4)));  // the other one's turn, then 12
}

// Eight rows a step.
//
//   step          1   2   3   4   5
//   A (16 + 1)    8   8
//   B (16 + 1)            8   4   4     came with A, but would only have stood behind it
//   C (3 + 1)                 3         came last, and stands before what is left of B
TEST(StepLoop, StartsWhatTheNextStepCanReadAndLeavesTheRestInTheQueue) {
  StepLoopHarness harness({.max_streams = 4, .steps = {.max_rows = 8}});
  Pieces pieces;
  RecordPieces(harness, pieces);
  const auto a = harness.Generate(SomeGeneration(16, 1, 1));
  const auto b = harness.Generate(SomeGeneration(16, 1, 2));
  harness.loop->RunOnce();
  EXPECT_EQ(harness.queue.size(), 1);
  harness.loop->RunOnce();
  EXPECT_TRUE(a->end.ended());
  EXPECT_EQ(harness.queue.size(), 1);
  harness.loop->RunOnce();
  const auto c = harness.Generate(SomeGeneration(3, 1, 3));
  harness.loop->RunOnce();
  EXPECT_TRUE(c->end.ended());
  harness.RunToEnd();
  EXPECT_TRUE(b->status.ok());
  EXPECT_THAT(pieces, ElementsAre(ElementsAre(8), ElementsAre(8), ElementsAre(8), ElementsAre(4, 3), ElementsAre(4)));
}

// Eight rows a step: more than 128 tokens are a long prompt. Of four streams two are for such.
TEST(StepLoop, LeavesHalfOfItsStreamsToOthersThanLongPrompts) {
  StepLoopHarness harness({.max_streams = 4, .steps = {.max_rows = 8}});
  const auto a = harness.Generate(SomeGeneration(200, 1, 1));
  const auto b = harness.Generate(SomeGeneration(200, 1, 2));
  const auto c = harness.Generate(SomeGeneration(200, 1, 3));
  const auto d = harness.Generate(SomeGeneration(3, 1, 4));
  harness.loop->RunOnce();
  EXPECT_TRUE(d->end.ended());
  EXPECT_EQ(harness.loop->state().active_streams, 2);
  while (!a->end.ended() && !b->end.ended()) {
    EXPECT_EQ(harness.queue.size(), 1) << "the third, however little is left of the others";
    harness.loop->RunOnce();
  }
  harness.Generate(SomeGeneration(3, 10, 5));
  harness.Generate(SomeGeneration(3, 10, 6));
  harness.Generate(SomeGeneration(3, 10, 7));
  harness.loop->RunOnce();
  EXPECT_EQ(harness.loop->state().active_streams, 4);
  EXPECT_EQ(harness.queue.size(), 1) << "the third was before those that came last";
  harness.RunToEnd();
  EXPECT_TRUE(c->status.ok());
}

// 8 streams: 4 long prompts, of which each of two clients may have 2.
TEST(StepLoop, ALongPromptDoesNotWaitForLongPromptsOfAnotherClient) {
  StepLoopHarness harness({.max_streams = 8, .steps = {.max_rows = 8}});
  const auto generate = [&](uint32_t seed, const char* client) {
    GenerationRequest request = SomeGeneration(200, 1, seed);
    request.context.client = client;
    return harness.Generate(std::move(request));
  };
  for (uint32_t seed = 0; seed < 10; ++seed) generate(seed, "greedy");
  harness.loop->RunOnce();
  ASSERT_EQ(harness.loop->state().active_streams, 4) << "a client that is alone has all of them";
  for (uint32_t seed = 10; seed < 13; ++seed) generate(seed, "other");
  harness.loop->RunOnce();
  EXPECT_EQ(harness.queue.LoadOf("other").running, 2);
  EXPECT_EQ(harness.queue.LoadOf("greedy").running, 4) << "what was begun is read to its end";
  generate(13, "third");
  harness.loop->RunOnce();
  EXPECT_EQ(harness.queue.LoadOf("third").running, 1);
  harness.RunToEnd();
}

TEST(StepLoop, ALongPromptDoesNotWaitForLongPromptsOfALowerPriority) {
  StepLoopHarness harness({.max_streams = 5, .steps = {.max_rows = 8}});
  const auto generate = [&](uint32_t seed, Priority priority) {
    GenerationRequest request = SomeGeneration(200, 1, seed);
    request.context.priority = priority;
    return harness.Generate(std::move(request));
  };
  generate(1, Priority::kLow);
  generate(2, Priority::kLow);
  harness.loop->RunOnce();
  ASSERT_EQ(harness.loop->state().active_streams, 2);
  generate(3, Priority::kHigh);
  harness.loop->RunOnce();
  EXPECT_EQ(harness.loop->state().active_streams, 3);
  generate(4, Priority::kNormal);
  generate(5, Priority::kLow);
  harness.loop->RunOnce();
  EXPECT_EQ(harness.loop->state().active_streams, 4);
  EXPECT_EQ(harness.queue.size(), 1) << "the low one, though a stream is free";
  harness.RunToEnd();
}

TEST(StepLoop, ALongPromptWaitsForLongPromptsOfAHigherPriority) {
  StepLoopHarness harness({.max_streams = 4, .steps = {.max_rows = 8}});
  for (const uint32_t seed : {1, 2, 3}) {
    GenerationRequest request = SomeGeneration(200, 1, seed);
    request.context.priority = seed < 3 ? Priority::kHigh : Priority::kNormal;
    harness.Generate(std::move(request));
    harness.loop->RunOnce();
  }
  EXPECT_EQ(harness.loop->state().active_streams, 2);
  EXPECT_EQ(harness.queue.size(), 1);
  harness.RunToEnd();
}

TEST(StepLoop, APromptThatWasReadBeforeIsNoLongOne) {
  StepLoopHarness harness({.max_streams = 2, .steps = {.max_rows = 8}});
  harness.Generate(SomeGeneration(200, 1, 1));
  harness.RunToEnd();
  harness.Generate(SomeGeneration(300, 1, 2));
  harness.loop->RunOnce();
  const auto known = harness.Generate(SomeGeneration(200, 1, 1));
  harness.loop->RunOnce();
  EXPECT_EQ(harness.queue.size(), 0);
  EXPECT_EQ(known->summary.reused_tokens, 192);
  harness.RunToEnd();
}

TEST(StepLoop, NeverExceedsTheRowsOfAStepAndLetsStreamsTakeTurnsWhenTheyAreFew) {
  StepLoopHarness harness({.max_streams = 9, .steps = {.max_rows = 5}});
  Pieces pieces;
  RecordPieces(harness, pieces);
  std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
  for (uint32_t seed = 0; seed < 9; ++seed) listeners.push_back(harness.Generate(SomeGeneration(10 + seed, 6, seed)));
  harness.RunToEnd();
  for (const auto& step : pieces) {
    EXPECT_LE(std::accumulate(step.begin(), step.end(), int64_t{0}), 5);
    EXPECT_THAT(step, testing::Each(testing::Ge(1)));
  }
  for (const auto& listener : listeners) EXPECT_EQ(listener->summary.generated_tokens, 6);
}

TEST(StepLoop, AdmitsInTheOrderOfTheQueueWhenAStreamIsFree) {
  StepLoopHarness harness({.max_streams = 2, .steps = {.max_rows = 100}});
  const auto a = harness.Generate(SomeGeneration(3, 4, 1));
  const auto b = harness.Generate(SomeGeneration(3, 2, 2));
  const auto c = harness.Generate(SomeGeneration(3, 2, 3));
  const auto d = harness.Generate(SomeGeneration(3, 1, 4));
  harness.loop->RunOnce();
  EXPECT_EQ(harness.loop->state().active_streams, 2);
  EXPECT_EQ(harness.queue.size(), 2);
  EXPECT_TRUE(c->deltas.empty());
  harness.loop->RunOnce();  // b ends
  EXPECT_TRUE(b->end.ended());
  harness.loop->RunOnce();  // c begins
  EXPECT_EQ(c->deltas.size(), 1u);
  EXPECT_TRUE(d->deltas.empty());
  harness.RunToEnd();
  EXPECT_TRUE(a->end.ended() && c->end.ended() && d->end.ended());
}

TEST(StepLoop, EndsACancelledStreamBeforeTheNextStep) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(5, 100);
  const auto listener = harness.Generate(request);
  harness.loop->RunOnce();
  harness.loop->RunOnce();
  request.context.cancelled->store(true);
  EXPECT_FALSE(harness.loop->RunOnce());
  EXPECT_EQ(harness.observer.steps.size(), 2u);
  EXPECT_EQ(listener->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(listener->summary.prompt_tokens, 5);
  EXPECT_EQ(listener->summary.generated_tokens, 2);
  EXPECT_EQ(harness.loop->state().cache_bytes_used, 0);
}

TEST(StepLoop, EndsAStreamAtItsDeadlineWithTheCountsSoFar) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 8}});
  harness.model.on_step = [&harness](absl::Span<const models::Slice>) {
    harness.clock.Advance(absl::Milliseconds(10));
    return absl::OkStatus();
  };
  GenerationRequest request = SomeGeneration(24, 100);
  request.context.deadline = harness.clock.Now() + absl::Milliseconds(20);
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(listener->status, absl::DeadlineExceededError("the deadline passed while the request was running"));
  EXPECT_EQ(listener->summary.prompt_tokens, 16);
  EXPECT_EQ(listener->summary.generated_tokens, 0);
  EXPECT_EQ(listener->summary.timings.prefill, absl::Milliseconds(20));
}

TEST(StepLoop, EndsAbandonedQueuedRequestsWithoutAStep) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 100}});
  harness.Generate(SomeGeneration(5, 50));
  harness.loop->RunOnce();
  ScoringRequest expired = SomeScoring(50);
  expired.context.deadline = harness.clock.Now() + absl::Seconds(1);
  ScoringRequest cancelled = SomeScoring(50);
  const auto expired_listener = harness.Score(expired);
  const auto cancelled_listener = harness.Score(cancelled);
  const auto patient_listener = harness.Score(SomeScoring(50));
  cancelled.context.cancelled->store(true);
  harness.clock.Advance(absl::Seconds(1));
  harness.loop->RunOnce();
  EXPECT_EQ(expired_listener->score.status(),
            absl::DeadlineExceededError("the deadline passed while the request waited in the queue"));
  EXPECT_EQ(cancelled_listener->score.status(), absl::CancelledError("the client cancelled"));
  EXPECT_FALSE(patient_listener->end.ended());
  EXPECT_EQ(harness.observer.queued.size(), 1u);
  harness.RunToEnd();
  EXPECT_TRUE(patient_listener->score.ok());
}

TEST(StepLoop, ARequestThatExpiredInTheQueueOfAnIdleEngineCostsNoStep) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(5, 5);
  request.context.deadline = harness.clock.Now();
  const auto listener = harness.Generate(request);
  EXPECT_FALSE(harness.loop->RunOnce());
  EXPECT_EQ(listener->status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(harness.observer.steps.empty());
}

TEST(StepLoop, LogitsThatAreNotFiniteEndTheirOwnRequestOnly) {
  StepLoopHarness harness;
  const GenerationRequest request = SomeGeneration(5, 10, 1);
  const auto poisoned = harness.Generate(SomeGeneration(5, 10));
  const auto other = harness.Generate(request);
  int step = 0;
  harness.model.on_logits = [&step](std::vector<float>& logits) {
    if (++step == 3) logits[7] = std::numeric_limits<float>::quiet_NaN();  // the first row
  };
  harness.RunToEnd();
  EXPECT_EQ(poisoned->status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(poisoned->summary.generated_tokens, 2);
  EXPECT_TRUE(other->status.ok());
  EXPECT_EQ(other->tokens, harness.TokensAlone(request));
}

TEST(StepLoop, WhatLogitsThatAreNotFiniteCameFromIsReadAgain) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 100}});
  const GenerationRequest request = SomeGeneration(200, 1);
  harness.model.on_logits = [](std::vector<float>& logits) {
    if (!logits.empty()) logits[7] = std::numeric_limits<float>::quiet_NaN();
  };
  const auto poisoned = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(poisoned->status.code(), absl::StatusCode::kInternal);
  harness.model.on_logits = nullptr;
  const auto again = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(again->summary.reused_tokens, 0);
  EXPECT_EQ(again->tokens, harness.TokensAlone(request));
}

TEST(StepLoop, LogitsOfAWrongSizeEndTheStep) {
  StepLoopHarness harness;
  harness.model.on_logits = [](std::vector<float>& logits) { logits.pop_back(); };
  const auto listener = harness.Generate(SomeGeneration(5, 10));
  harness.RunToEnd();
  EXPECT_EQ(listener->status.code(), absl::StatusCode::kInternal);
}

TEST(StepLoop, EndAllEndsRunningAndWaitingRequests) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 100}});
  const auto running = harness.Generate(SomeGeneration(5, 10));
  const auto waiting = harness.Score(SomeScoring(5));
  harness.loop->RunOnce();
  harness.loop->EndAll(absl::UnavailableError("stopping"));
  EXPECT_EQ(running->status, absl::UnavailableError("stopping"));
  EXPECT_EQ(waiting->score.status(), absl::UnavailableError("stopping"));
  EXPECT_FALSE(harness.loop->RunOnce());
  EXPECT_EQ(harness.loop->state().cache_bytes_used, 0);
}

TEST(StepLoop, AListenerMayAskForMoreFromItsCall) {
  StepLoopHarness harness;
  const auto first = harness.Generate(SomeGeneration(5, 2));
  std::shared_ptr<RecordingScoringListener> second;
  first->on_delta = [&harness, &second] {
    if (!second) second = harness.Score(SomeScoring(9));
  };
  harness.RunToEnd();
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second->score.ok());
}

}  // namespace longshort::core::step_loop_scheduling_test
