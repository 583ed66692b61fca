// Steps of a device that runs them while the worker samples.
#include <functional>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_overlap_test {

using ::testing::Each;
using ::testing::SizeIs;

constexpr int64_t kStreams = 8;
constexpr int64_t kTokens = 20;

// A device that runs two steps at once. A step takes 10 us, and a token `sampling`.
class OverlappingSteps : public testing::Test {
 protected:
  OverlappingSteps() {
    harness_.model.at_once = 2;
    harness_.model.device_time = absl::Microseconds(10);
    harness_.model.on_step = [this](absl::Span<const models::Slice> slices) {
      rows_.push_back(0);
      for (const models::Slice& slice : slices) rows_.back() += static_cast<int64_t>(slice.tokens.size());
      return on_step_ ? on_step_() : absl::OkStatus();
    };
  }

  std::shared_ptr<RecordingGenerationListener> Generate(uint32_t seed, absl::Duration sampling, int64_t prompt = 5) {
    auto listener = harness_.Generate(SomeGeneration(prompt, kTokens, seed));
    listener->on_delta = [this, sampling] {
      harness_.clock.Advance(sampling);
      begun_while_sampling_.push_back(harness_.model.begun());
    };
    return listener;
  }
  std::vector<std::shared_ptr<RecordingGenerationListener>> GenerateAll(absl::Duration sampling) {
    std::vector<std::shared_ptr<RecordingGenerationListener>> all;
    for (uint32_t seed = 0; seed < kStreams; ++seed) all.push_back(Generate(seed, sampling));
    return all;
  }
  void ExpectTheTokensOfEachAlone(const std::vector<std::shared_ptr<RecordingGenerationListener>>& all) {
    for (uint32_t seed = 0; seed < all.size(); ++seed) {
      EXPECT_TRUE(all[seed]->status.ok()) << all[seed]->status;
      EXPECT_EQ(all[seed]->tokens, harness_.TokensAlone(SomeGeneration(5, kTokens, seed)));
    }
  }

  StepLoopHarness harness_{{.max_streams = kStreams}};
  std::function<absl::Status()> on_step_;
  std::vector<int64_t> rows_;                  // of each step
  std::vector<int64_t> begun_while_sampling_;  // steps that the device had when a token was sampled
};

TEST_F(OverlappingSteps, TheDeviceHasAStepWhileTokensAreSampled) {
  const auto all = GenerateAll(absl::Microseconds(30));
  harness_.RunToEnd();
  ExpectTheTokensOfEachAlone(all);
  // The first tokens show how long sampling takes. With the last ones nothing is left to run.
  ASSERT_THAT(begun_while_sampling_, SizeIs(kStreams * kTokens));
  begun_while_sampling_.erase(begun_while_sampling_.begin(), begun_while_sampling_.begin() + 2 * kStreams);
  begun_while_sampling_.resize(begun_while_sampling_.size() - kStreams);
  EXPECT_THAT(begun_while_sampling_, Each(1));
  EXPECT_THAT(std::vector<int64_t>(rows_.end() - 20, rows_.end() - 2), Each(kStreams / 2));
}

// All weights are read for each step, so a step of half of the streams takes as long as one of all.
TEST_F(OverlappingSteps, StreamsAreNotDividedIfSamplingIsFast) {
  const auto all = GenerateAll(absl::Nanoseconds(100));
  harness_.RunToEnd();
  ExpectTheTokensOfEachAlone(all);
  EXPECT_THAT(begun_while_sampling_, Each(0));
  EXPECT_THAT(std::vector<int64_t>(rows_.end() - 10, rows_.end()), Each(kStreams));
}

TEST_F(OverlappingSteps, AFailureIsOfTheStepThatHadIt) {
  const auto all = GenerateAll(absl::Microseconds(30));
  int64_t steps = 0;
  on_step_ = [&] { return ++steps == 12 ? absl::InternalError("the device failed") : absl::OkStatus(); };
  harness_.RunToEnd();
  ExpectTheTokensOfEachAlone(all);
  EXPECT_THAT(harness_.observer.failures, SizeIs(1));
  EXPECT_EQ(harness_.rebuilt, 0);
}

TEST_F(OverlappingSteps, AllRequestsContinueElsewhereWhenTheModelBreaksBesideAStep) {
  const auto all = GenerateAll(absl::Microseconds(30));
  int64_t steps = 0;
  on_step_ = [&] {
    ++steps;
    return steps == 12 || steps == 13 ? absl::InternalError("the device failed") : absl::OkStatus();
  };
  harness_.RunToEnd();
  ExpectTheTokensOfEachAlone(all);
  EXPECT_EQ(harness_.rebuilt, 1);
}

TEST_F(OverlappingSteps, ACancelledRequestLeavesAfterItsStep) {
  const auto kept = Generate(0, absl::Microseconds(30));
  auto request = SomeGeneration(5, kTokens, 1);
  const auto flag = request.context.cancelled;
  const auto cancelled = harness_.Generate(std::move(request));
  for (int i = 0; i < 7; ++i) harness_.RunOnce();
  flag->store(true);
  harness_.RunToEnd();
  EXPECT_TRUE(absl::IsCancelled(cancelled->status));
  EXPECT_TRUE(kept->status.ok());
}

TEST_F(OverlappingSteps, AllEndAtOnceBesideAStep) {
  const auto all = GenerateAll(absl::Microseconds(30));
  while (harness_.model.begun() == 0 || rows_.size() < 10) harness_.RunOnce();
  harness_.loop->EndAll(absl::UnavailableError("stopping"));
  EXPECT_EQ(harness_.model.begun(), 0);
  for (const auto& listener : all) EXPECT_TRUE(absl::IsUnavailable(listener->status));
  EXPECT_TRUE(harness_.loop->CheckInvariants().ok());
  EXPECT_EQ(harness_.loop->state().cache_bytes_used, 0);
}

// Without streams that decode, no reader waits for a step, so prompts overlap.
TEST_F(OverlappingSteps, APromptIsReadWhileAnotherOneIs) {
  harness_.Score(SomeScoring(600, 1));
  harness_.RunOnce();
  EXPECT_EQ(harness_.model.begun(), 1);
  harness_.Score(SomeScoring(100, 2));
  harness_.RunOnce();
  EXPECT_THAT(rows_, SizeIs(2)) << "the second began before the first ended";
  harness_.RunToEnd();
}

}  // namespace longshort::core::step_loop_overlap_test
