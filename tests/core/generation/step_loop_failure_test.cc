// Steps of the model that fail: which requests continue, which end, and that the others do not notice.

#include <random>
#include <stdexcept>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_failure_test {

TEST(StepLoopFailure, AFailedStepEndsNoRequest) {
  StepLoopHarness harness;
  int step = 0;
  harness.model.on_step = [&step](absl::Span<const models::Slice>) {
    return ++step % 7 == 2 ? absl::InternalError("out of luck") : absl::OkStatus();
  };
  const GenerationRequest generation = SomeGeneration(150, 60);
  const auto generated = harness.Generate(generation);
  ScoringRequest scoring = SomeScoring(300, 1);
  scoring.log_probabilities = true;
  const auto scored = harness.Score(scoring);
  harness.RunToEnd();
  ASSERT_TRUE(generated->status.ok()) << generated->status;
  EXPECT_EQ(generated->tokens, harness.TokensAlone(generation));
  ASSERT_TRUE(scored->score.ok()) << scored->score.status();
  ASSERT_EQ(scored->score->tokens.size(), 299u);
  for (int64_t i = 0; i < 299; ++i) {
    EXPECT_FLOAT_EQ(scored->score->tokens[i].log_probability, harness.LogProbabilityAlone(scoring.tokens, i + 1));
  }
  EXPECT_GT(harness.observer.failures.size(), 3u);
  EXPECT_EQ(harness.observer.failures[0], absl::InternalError("the model's step failed: out of luck"));
  EXPECT_EQ(harness.observer.queued.size(), 2u) << "who goes on was not queued again";
}

TEST(StepLoopFailure, AModelThatThrowsIsDiscardedAndItsRequestsContinueWithAnother) {
  StepLoopHarness harness;
  int step = 0;
  harness.model.on_step = [&step](absl::Span<const models::Slice>) -> absl::Status {
    if (++step == 3 || step == 30) throw std::runtime_error("out of memory");
    return absl::OkStatus();
  };
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
  for (uint32_t i = 0; i < 3; ++i) {
    requests.push_back(SomeGeneration(5 + 50 * i, 40, i));
    listeners.push_back(harness.Generate(requests.back()));
  }
  harness.RunToEnd();
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(listeners[i]->status.ok()) << listeners[i]->status;
    EXPECT_EQ(listeners[i]->tokens, harness.TokensAlone(requests[i]));
  }
  EXPECT_EQ(harness.rebuilt, 2);
  EXPECT_EQ(harness.observer.queued.size(), 3u) << "who goes on was not queued again";
}

TEST(StepLoopFailure, AModelThatFailsAgainAndAgainIsDiscarded) {
  StepLoopHarness harness;
  int step = 0;
  harness.model.on_step = [&step](absl::Span<const models::Slice>) {
    ++step;
    return 10 < step && step <= 12 ? absl::InternalError("device lost") : absl::OkStatus();
  };
  const GenerationRequest request = SomeGeneration(5, 20), other = SomeGeneration(7, 20, 1);
  const auto first = harness.Generate(request), second = harness.Generate(other);
  harness.RunToEnd();
  EXPECT_EQ(harness.rebuilt, 1);
  EXPECT_EQ(first->tokens, harness.TokensAlone(request));
  EXPECT_EQ(second->tokens, harness.TokensAlone(other));
}

TEST(StepLoopFailure, AStreamThatRunsAloneIsTriedOnTheNextModelToo) {
  StepLoopHarness harness;
  int step = 0;
  harness.model.on_step = [&](absl::Span<const models::Slice>) {
    return ++step > 10 && harness.rebuilt == 0 ? absl::InternalError("device lost") : absl::OkStatus();
  };
  const GenerationRequest request = SomeGeneration(5, 20);
  const auto alone = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(harness.rebuilt, 1);
  EXPECT_EQ(alone->tokens, harness.TokensAlone(request));
}

TEST(StepLoopFailure, AWorkerOnProbationRunsOneRequestUntilAStepHasPassed) {
  StepLoopHarness harness({}, RoomForAll(), SmallModelInfo(), 2);
  harness.queue.OnWorkerFull(1);
  harness.queue.OnModelDiscarded(0);
  std::vector<size_t> sizes;
  harness.model.on_step = [&sizes](absl::Span<const models::Slice> slices) {
    sizes.push_back(slices.size());
    return sizes.size() == 1 ? absl::InternalError("device lost") : absl::OkStatus();
  };
  for (uint32_t i = 0; i < 3; ++i) harness.Generate(SomeGeneration(5, 20, i));
  harness.RunOnce();
  EXPECT_EQ(harness.rebuilt, 1) << "for one failure";
  harness.RunOnce();
  harness.RunOnce();
  EXPECT_THAT(sizes, testing::ElementsAre(1, 1, 3));
  harness.RunToEnd();
}

TEST(StepLoopFailure, OneThatAlwaysFailsIsEndedAndTheOthersGoOn) {
  StepLoopHarness harness;
  constexpr int32_t kPoison = 3;  // never sampled, and in no other prompt
  harness.model.on_step = [](absl::Span<const models::Slice> slices) {
    for (const models::Slice& slice : slices) {
      for (const int32_t token : slice.tokens) {
        if (token == kPoison) return absl::InternalError("poisoned");
      }
    }
    return absl::OkStatus();
  };
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
  for (uint32_t i = 0; i < 6; ++i) {
    requests.push_back(SomeGeneration(20, 40, i));
    if (i == 2) requests.back().prompt[10] = kPoison;
    listeners.push_back(harness.Generate(requests.back()));
  }
  harness.RunToEnd();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i == 2) {
      EXPECT_EQ(listeners[i]->status, absl::InternalError("the model's step failed: poisoned"));
    } else {
      EXPECT_TRUE(listeners[i]->status.ok()) << i << ": " << listeners[i]->status;
      EXPECT_EQ(listeners[i]->tokens, harness.TokensAlone(requests[i])) << i;
    }
  }
  EXPECT_LE(harness.observer.failures.size(), 10u);
}

// What it reads again behind the last block that the cache kept passes every time, and says nothing.
TEST(StepLoopFailure, OneThatAlwaysFailsInTheMiddleIsEndedAndTheOthersGoOn) {
  StepLoopHarness harness;
  constexpr int64_t kFailsAt = 100;  // which one comes to
  harness.model.on_step = [](absl::Span<const models::Slice> slices) {
    for (const models::Slice& slice : slices) {
      const int64_t end = slice.position + static_cast<int64_t>(slice.tokens.size());
      if (slice.position <= kFailsAt && kFailsAt < end) return absl::InternalError("poisoned");
    }
    return absl::OkStatus();
  };
  const auto poisonous = harness.Generate(SomeGeneration(90, 20));
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
  for (uint32_t i = 1; i < 6; ++i) {
    requests.push_back(SomeGeneration(20, 40, i));
    listeners.push_back(harness.Generate(requests.back()));
  }
  for (int round = 0; round < 500 && harness.RunOnce(); ++round) continue;
  EXPECT_EQ(poisonous->status, absl::InternalError("the model's step failed: poisoned"));
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(listeners[i]->status.ok()) << i << ": " << listeners[i]->status;
    EXPECT_EQ(listeners[i]->tokens, harness.TokensAlone(requests[i])) << i;
  }
  EXPECT_LE(harness.observer.failures.size(), 4u);
}

// The same of one that runs alone; and a model that is to blame is given up.
TEST(StepLoopFailure, AStreamThatAlwaysFailsInTheMiddleIsTriedOnAnotherModelAndEnded) {
  StepLoopHarness harness;
  bool of_every_model = false;
  harness.model.on_step = [&](absl::Span<const models::Slice> slices) {
    const bool fails = slices[0].position == 100 && (of_every_model || harness.rebuilt == 0);
    return fails ? absl::InternalError("device lost") : absl::OkStatus();
  };
  const GenerationRequest request = SomeGeneration(90, 20);
  const auto first = harness.Generate(request);
  for (int round = 0; round < 100 && harness.RunOnce(); ++round) continue;
  EXPECT_EQ(harness.rebuilt, 1);
  EXPECT_EQ(first->tokens, harness.TokensAlone(request));

  of_every_model = true;
  const auto second = harness.Generate(SomeGeneration(90, 20, 1));
  for (int round = 0; round < 100 && harness.RunOnce(); ++round) continue;
  EXPECT_EQ(second->status, absl::InternalError("the model's step failed: device lost"));
}

// Otherwise a client whose requests break the model would always have the smallest charge, and be first.
TEST(StepLoopFailure, WhatStepsThatFailTakeIsChargedToWhoWasInThem) {
  StepLoopHarness harness({.max_streams = 1});
  constexpr int32_t kPoison = 3;  // never sampled, and in no other prompt
  harness.model.on_step = [&harness](absl::Span<const models::Slice> slices) {
    harness.clock.Advance(absl::Seconds(1));
    for (const int32_t token : slices[0].tokens) {
      if (token == kPoison) return absl::InternalError("poisoned");
    }
    return absl::OkStatus();
  };
  const auto ask = [&harness](const std::string& client, bool poisoned) {
    ScoringRequest request = SomeScoring(20);
    request.context.client = client;
    if (poisoned) request.tokens[10] = kPoison;
    return harness.Score(request);
  };
  const auto poisoned = ask("sick", true), next = ask("sick", false);
  const auto first = ask("well", false), second = ask("well", false);
  while (!second->end.ended()) harness.RunOnce();
  EXPECT_EQ(harness.observer.failures.size(), 3u);
  EXPECT_TRUE(poisoned->end.ended());
  EXPECT_TRUE(first->end.ended());
  EXPECT_FALSE(next->end.ended());
  harness.RunToEnd();
}

TEST(StepLoopFailure, AModelThatAlwaysFailsEndsAll) {
  StepLoopHarness harness;
  harness.model.on_step = [](absl::Span<const models::Slice>) { return absl::InternalError("broken"); };
  const auto first = harness.Generate(SomeGeneration(20, 40));
  const auto second = harness.Score(SomeScoring(20));
  harness.RunToEnd();
  EXPECT_TRUE(absl::IsInternal(first->status));
  EXPECT_TRUE(absl::IsInternal(second->score.status()));
}

TEST(StepLoopFailure, StepsThatFailOnlyInCompanyEndInTheEnd) {
  StepLoopHarness harness;
  harness.model.on_step = [](absl::Span<const models::Slice> slices) {
    return slices.size() > 1 ? absl::InternalError("too many") : absl::OkStatus();
  };
  std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
  for (uint32_t i = 0; i < 3; ++i) listeners.push_back(harness.Generate(SomeGeneration(20, 400, i)));
  harness.RunToEnd();
  for (const auto& listener : listeners) EXPECT_TRUE(listener->end.ended());
}

// One of two who read the same prompt goes on behind what the other read, where a block of 192 tokens ends; of their 48
// vectors the page, which has room for 64, is to be copied.
TEST(StepLoopFailure, ACopyThatFailsEndsOnlyWhomItIsFor) {
  models::LanguageModelInfo info = SmallModelInfo();
  info.chunk_rank = 1;
  StepLoopHarness harness({.steps = {.max_rows = 100}}, RoomForAll(), info);
  int copies = 0;
  harness.model.on_copy = [&copies] { return ++copies == 1 ? absl::InternalError("no memory") : absl::OkStatus(); };
  const GenerationRequest request = SomeGeneration(1000, 20), other = SomeGeneration(50, 60, 1);
  const auto first = harness.Generate(request), second = harness.Generate(request), third = harness.Generate(other);
  harness.RunToEnd();
  EXPECT_NE(first->status.ok(), second->status.ok());
  for (const auto& listener : {first, second}) {
    if (listener->status.ok()) {
      EXPECT_EQ(listener->tokens, harness.TokensAlone(request));
    } else {
      EXPECT_EQ(listener->status, absl::InternalError("no memory"));
    }
  }
  EXPECT_TRUE(third->status.ok()) << third->status;
  EXPECT_EQ(third->tokens, harness.TokensAlone(other));
}

// A session's last call failed in the middle: what was said before is still there.
TEST(StepLoopFailure, SessionsSurviveIt) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(100, 20);
  request.session = SessionReference{.id = "talk"};
  const auto first = harness.Generate(request);
  harness.RunToEnd();
  bool failed = false;
  harness.model.on_step = [&failed](absl::Span<const models::Slice>) {
    return std::exchange(failed, true) ? absl::OkStatus() : absl::InternalError("once");
  };
  GenerationRequest next = SomeGeneration(10, 20, 3);
  next.session = request.session;
  GenerationRequest alone = next;
  alone.prompt = request.prompt;
  alone.prompt.insert(alone.prompt.end(), first->tokens.begin(), first->tokens.end());
  alone.prompt.insert(alone.prompt.end(), next.prompt.begin(), next.prompt.end());
  const auto second = harness.Generate(next);
  harness.RunToEnd();
  EXPECT_TRUE(failed);
  EXPECT_EQ(second->tokens, harness.TokensAlone(alone));
}

}  // namespace longshort::core::step_loop_failure_test
