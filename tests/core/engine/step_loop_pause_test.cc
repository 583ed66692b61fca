// Requests whose clients take nothing for a while: they leave the steps, and go on where they were.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort {
namespace {

class StepLoopPause : public testing::Test {
 protected:
  void Steps(StepLoopHarness& harness, int count) {
    for (int i = 0; i < count; ++i) {
      harness.RunOnce();
      ASSERT_TRUE(harness.loop->CheckInvariants().ok()) << harness.loop->CheckInvariants();
    }
  }
};

TEST_F(StepLoopPause, APausedStreamStandsStillAndTheOthersGoOn) {
  StepLoopHarness harness;
  const GenerationRequest slow = SomeGeneration(70, 30), quick = SomeGeneration(40, 30, 1);
  const auto slow_listener = harness.Generate(slow), quick_listener = harness.Generate(quick);
  Steps(harness, 10);
  const size_t before = slow_listener->tokens.size();
  ASSERT_GT(before, 0u);
  slow.context.paused->store(true);
  harness.RunToEnd();
  EXPECT_EQ(slow_listener->tokens.size(), before);
  EXPECT_FALSE(slow_listener->end.ended());
  EXPECT_TRUE(quick_listener->end.ended());
  EXPECT_EQ(harness.loop->state().cache.parked_sequences, 1);

  slow.context.paused->store(false);
  const size_t rows_before = harness.observer.steps.size();
  harness.RunToEnd();
  EXPECT_EQ(slow_listener->tokens, harness.TokensAlone(slow));
  EXPECT_EQ(harness.observer.steps.size() - rows_before, 30 - before) << "nothing was read again";
}

// Room for one stream: another takes the paused one's pages, which are then computed again.
TEST_F(StepLoopPause, ItsPagesGoToWhoeverNeedsThem) {
  StepLoopHarness harness({.max_streams = 1});
  const GenerationRequest slow = SomeGeneration(400, 30), other = SomeGeneration(500, 30, 1);
  const auto slow_listener = harness.Generate(slow);
  while (slow_listener->tokens.size() < 5) Steps(harness, 1);
  slow.context.paused->store(true);
  const auto other_listener = harness.Generate(other);
  harness.RunToEnd();
  EXPECT_EQ(other_listener->tokens, harness.TokensAlone(other));
  slow.context.paused->store(false);
  harness.RunToEnd();
  EXPECT_EQ(slow_listener->tokens, harness.TokensAlone(slow));
  EXPECT_GT(harness.loop->state().cache.counters.evicted_parked, 0);
}

TEST_F(StepLoopPause, OneThatIsCancelledOrLateLeavesWithItsPages) {
  StepLoopHarness harness;
  GenerationRequest cancelled = SomeGeneration(70, 30), late = SomeGeneration(40, 30, 1);
  late.context.deadline = harness.clock.Now() + absl::Seconds(10);
  const auto cancelled_listener = harness.Generate(cancelled), late_listener = harness.Generate(late);
  Steps(harness, 10);
  for (const auto* request : {&cancelled, &late}) request->context.paused->store(true);
  harness.RunToEnd();
  EXPECT_FALSE(harness.queue.empty());
  cancelled.context.cancelled->store(true);
  harness.clock.Advance(absl::Seconds(10));
  harness.RunToEnd();
  EXPECT_EQ(cancelled_listener->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(late_listener->status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(harness.queue.empty());
  EXPECT_EQ(harness.loop->state().cache.parked_sequences, 0);
}

TEST_F(StepLoopPause, OneThatIsPausedBeforeItBeganWaitsForItsClient) {
  StepLoopHarness harness;
  const GenerationRequest slow = SomeGeneration(70, 5);
  slow.context.paused->store(true);
  const auto listener = harness.Generate(slow);
  harness.RunToEnd();
  EXPECT_FALSE(listener->end.ended());
  slow.context.paused->store(false);
  harness.RunToEnd();
  EXPECT_EQ(listener->tokens, harness.TokensAlone(slow));
}

}  // namespace
}  // namespace longshort
