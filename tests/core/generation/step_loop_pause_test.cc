// Requests whose clients take nothing for a while: they leave the steps, and go on where they were.
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_pause_test {

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
TEST_F(StepLoopPause, ItsPagesGoToSequencesThatNeedThem) {
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

class PagesOfTwoWorkers final : public SessionPages {
 public:
  void Release(const ParkedPlace& place) override { released.push_back(place); }
  std::vector<ParkedPlace> released;
};

// A loop of its own and another one take from one queue; the first one has begun with a request, which is paused.
class StepLoopPauseOfTwoWorkers : public StepLoopPause {
 protected:
  void SetUp() override {
    auto job = MakeJob(slow_, listener_, harness_.vocabulary, harness_.observer, harness_.sessions, pages_);
    (*job)->times.submitted = harness_.clock.Now();
    ASSERT_TRUE(harness_.queue.Push(*std::move(job)).ok());
    Steps(harness_, 10);
    slow_.context.paused->store(true);
    Steps(harness_, 1);
    ASSERT_EQ(harness_.loop->state().cache.parked_sequences, 1);
  }

  // Frees the pages that the first worker is notified of, as its next round does.
  void RemoveReleased() {
    ASSERT_EQ(pages_->released.size(), 1u);
    EXPECT_EQ(pages_->released[0].worker, 0);
    harness_.loop->cache().RemoveParked(pages_->released[0].id);
    EXPECT_EQ(harness_.loop->state().cache.parked_sequences, 0);
  }

  StepLoopHarness harness_{{}, RoomForAll(), SmallModelInfo(), 2};
  FakeLanguageModel other_model_;
  const std::unique_ptr<StepLoop> other_ =
      *StepLoop::Create(other_model_, harness_.queue, harness_.clock, harness_.states, {.worker = 1});
  const std::shared_ptr<PagesOfTwoWorkers> pages_ = std::make_shared<PagesOfTwoWorkers>();
  const GenerationRequest slow_ = SomeGeneration(70, 30);
  const std::shared_ptr<RecordingGenerationListener> listener_ = std::make_shared<RecordingGenerationListener>();
};

TEST_F(StepLoopPauseOfTwoWorkers, ItsPagesAreReleasedIfTheOtherOneEndsIt) {
  slow_.context.cancelled->store(true);
  other_->RunOnce();
  EXPECT_EQ(listener_->status.code(), absl::StatusCode::kCancelled);
  RemoveReleased();
}

TEST_F(StepLoopPauseOfTwoWorkers, ItsPagesAreReleasedIfItContinuesWithTheOtherOne) {
  harness_.queue.OnWorkerFull(0);  // has no room
  slow_.context.paused->store(false);
  other_->RunOnce();
  RemoveReleased();
  while (other_->RunOnce()) continue;
  EXPECT_EQ(listener_->tokens, harness_.TokensAlone(slow_));
  EXPECT_EQ(pages_->released.size(), 1u);
}

TEST_F(StepLoopPauseOfTwoWorkers, ItsPagesStayItsOwnIfItContinuesWhereItWas) {
  slow_.context.paused->store(false);
  harness_.RunToEnd();
  EXPECT_EQ(listener_->tokens, harness_.TokensAlone(slow_));
  EXPECT_TRUE(pages_->released.empty());
}

}  // namespace longshort::core::step_loop_pause_test
