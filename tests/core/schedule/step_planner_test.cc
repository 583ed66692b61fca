#include "core/schedule/step_planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::step_planner_test {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Le;

constexpr int64_t kChunkSize = 16;

// Sequences that read what the planner says, on a machine that takes 5 ms for a step, 0.3 ms for a row that decodes and
// 0.1 ms for one of a prompt.
class StepPlannerTest : public testing::Test {
 protected:
  void AddDecoding() { sequences_.push_back({.id = next_id_++, .attributes = &attributes_[""], .decoding = true}); }
  // Returns its id.
  int64_t AddPrompt(int64_t tokens, const std::string& client = "", Priority priority = Priority::kNormal) {
    WorkAttributes& attributes = attributes_[client];
    attributes.client = client;
    attributes.priority = priority;
    sequences_.push_back(
        {.id = next_id_++, .attributes = &attributes, .decoding = false, .position = 0, .unread = tokens});
    return sequences_.back().id;
  }

  std::vector<int64_t> Plan() {
    const auto pieces = planner_.Plan(sequences_);
    return {pieces.begin(), pieces.end()};
  }

  // One step; prompts that are read leave. Returns how long it took.
  absl::Duration Run() {
    const std::vector<int64_t> pieces = Plan();
    double milliseconds = 5;
    for (size_t i = 0; i < pieces.size(); ++i) {
      StepPlanner::Candidate& sequence = sequences_[i];
      milliseconds += (sequence.decoding ? 0.3 : 0.1) * static_cast<double>(pieces[i]);
      if (sequence.decoding) continue;
      read_[sequence.attributes->client] += pieces[i];
      sequence.position += pieces[i];
      sequence.unread -= pieces[i];
    }
    planner_.OnStep(planner_.planned(), absl::Milliseconds(milliseconds), /*failed=*/false);
    sequences_.erase(std::remove_if(sequences_.begin(), sequences_.end(), [](const auto& s) { return s.unread == 0; }),
                     sequences_.end());
    return absl::Milliseconds(milliseconds);
  }

  bool Waits(int64_t id) const {
    return std::any_of(sequences_.begin(), sequences_.end(), [id](const auto& s) { return s.id == id; });
  }

  // Steps of all kinds, until the planner knows the machine; then nothing is left to read.
  void LearnTheMachine() {
    for (int i = 0; i < 100; ++i) {
      if (i % 3 != 0) AddPrompt(16 * (1 + i % 20));
      if (i % 2 == 0) AddDecoding();
      if (i % 20 == 19) sequences_.clear();
      if (!sequences_.empty()) Run();
    }
    sequences_.clear();
    read_.clear();
  }

  StepPlanner planner_{{}, kChunkSize};
  std::vector<StepPlanner::Candidate> sequences_;
  std::map<std::string, int64_t> read_;  // tokens of prompts, by client
  std::map<std::string, WorkAttributes> attributes_;
  int64_t next_id_ = 0;
};

TEST_F(StepPlannerTest, ReadsAllThatFitsWhileNothingIsKnownOfTheTime) {
  AddDecoding();
  AddPrompt(100);
  AddPrompt(10'000);
  EXPECT_THAT(Plan(), ElementsAre(1, 100, 400));  // 411 rows are left; 400 end with a chunk
}

TEST_F(StepPlannerTest, AStepOfPromptsAloneTakesTheTargetTime) {
  LearnTheMachine();
  AddPrompt(10'000);
  // A chunk takes 1.6 ms, and the estimate is wrong by at most a tenth.
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(absl::ToDoubleMilliseconds(Run()), 30, 4.6);
}

TEST_F(StepPlannerTest, APromptSlowsThoseWhoDecodeDownByNoMoreThanIsSaid) {
  LearnTheMachine();
  for (int i = 0; i < 4; ++i) AddDecoding();
  const absl::Duration alone = Run();
  AddPrompt(10'000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(Run(), 2.7 * alone);
    EXPECT_GE(Plan().back(), kChunkSize);
  }
}

TEST_F(StepPlannerTest, PromptsGetTheirShareBesideAsManyStreamsAsThereAreRows) {
  for (int i = 0; i < 512; ++i) AddDecoding();
  AddPrompt(10'000);
  EXPECT_THAT(Plan().back(), Ge(64));  // an eighth
}

// 40 sequences, 10 rows: every four steps each has had one.
TEST_F(StepPlannerTest, SequencesThatDecodeTakeTurnsIfNotAllFit) {
  StepPlanner planner({.max_rows = 10}, kChunkSize);
  for (int i = 0; i < 40; ++i) AddDecoding();
  std::vector<int64_t> rows(40, 0);
  for (int step = 0; step < 40; ++step) {
    const auto pieces = planner.Plan(sequences_);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] += pieces[i];
    if (step % 4 == 3) {
      EXPECT_THAT(rows, Each(step / 4 + 1));
    }
  }
}

// A GPU takes 4 ms for a step of any size.
TEST_F(StepPlannerTest, AStepIsAsLargeAsTheDevice) {
  StepPlanner planner({}, kChunkSize, {.rows = 4096, .logit_rows = 4096});
  for (int i = 0; i < 1000; ++i) AddDecoding();
  EXPECT_THAT(planner.Plan(sequences_), Each(1)) << "all streams decode in one step";
  planner.OnStep(planner.planned(), absl::Milliseconds(4), /*failed=*/false);
  sequences_.clear();
  AddPrompt(8192);
  int steps = 0;
  for (; sequences_[0].unread > 0; ++steps) {
    const int64_t tokens = planner.Plan(sequences_)[0];
    planner.OnStep(planner.planned(), absl::Milliseconds(4), /*failed=*/false);
    sequences_[0].position += tokens;
    sequences_[0].unread -= tokens;
  }
  EXPECT_LE(steps, 3);
}

TEST_F(StepPlannerTest, AShortPromptIsReadInOneStepWhileALongOneIsRead) {
  LearnTheMachine();
  const int64_t long_prompt = AddPrompt(32'768);
  for (int i = 0; i < 50; ++i) {
    Run();
    const int64_t short_prompt = AddPrompt(100);
    Run();
    EXPECT_FALSE(Waits(short_prompt));
  }
  EXPECT_TRUE(Waits(long_prompt));
}

TEST_F(StepPlannerTest, ALongPromptGetsAQuarterHoweverManyShortOnesCome) {
  LearnTheMachine();
  AddPrompt(1'000'000, "long");
  for (int i = 0; i < 500; ++i) {
    while (sequences_.size() < 20) AddPrompt(64, "short");
    Run();
  }
  const auto of_long = static_cast<double>(read_["long"]);
  EXPECT_GT(of_long / (of_long + static_cast<double>(read_["short"])), 0.2);
}

// Half of the quarter that goes in order is for each client, though one of them has ten times as many prompts.
TEST_F(StepPlannerTest, LongPromptsOfTwoClientsShareByClientNotByPrompt) {
  LearnTheMachine();
  for (int i = 0; i < 10; ++i) AddPrompt(1'000'000, "many");
  AddPrompt(1'100'000, "one");
  for (int i = 0; i < 1000; ++i) Run();
  const auto of_one = static_cast<double>(read_["one"]);
  EXPECT_GT(of_one / (of_one + static_cast<double>(read_["many"])), 0.12);
}

TEST_F(StepPlannerTest, AHigherPriorityReadsMoreOfItsLongPrompts) {
  LearnTheMachine();
  AddPrompt(1'000'000, "high", Priority::kHigh);
  AddPrompt(1'000'000, "low", Priority::kLow);
  for (int i = 0; i < 300; ++i) Run();
  EXPECT_GT(read_["high"], read_["low"]);
  EXPECT_GT(read_["low"], 0);
}

TEST_F(StepPlannerTest, PiecesEndWithAChunkOrWhereTheCacheSays) {
  LearnTheMachine();
  AddPrompt(1000);
  sequences_.back().position = 7;
  AddPrompt(1000);
  sequences_.back().max_tokens = 5;
  const std::vector<int64_t> pieces = Plan();
  EXPECT_EQ((7 + pieces[0]) % kChunkSize, 0);
  EXPECT_EQ(pieces[1], 5);
}

TEST_F(StepPlannerTest, EveryStepHasRowsAndNoneTooMany) {
  StepPlanner planner({.max_rows = 8}, kChunkSize);
  for (int i = 0; i < 5; ++i) {
    AddDecoding();
    AddPrompt(1 + 40 * i);
  }
  for (int step = 0; step < 100; ++step) {
    const auto pieces = planner.Plan(sequences_);
    const int64_t rows = std::accumulate(pieces.begin(), pieces.end(), int64_t{0});
    EXPECT_THAT(rows, AllOf(Ge(1), Le(8)));
    planner.OnStep(planner.planned(), absl::Seconds(1), /*failed=*/false);  // far over the target
  }
}

TEST_F(StepPlannerTest, TheTimeOfAStepIsDividedAmongThoseWhoWereInIt) {
  LearnTheMachine();
  AddDecoding();
  AddDecoding();
  AddPrompt(100);
  const absl::Duration step = Run();
  EXPECT_NEAR(absl::FDivDuration(planner_.ShareOf(0) + planner_.ShareOf(1) + planner_.ShareOf(2), step), 1, 1e-6);
  EXPECT_EQ(planner_.ShareOf(0), planner_.ShareOf(1));
  EXPECT_GT(planner_.ShareOf(2), planner_.ShareOf(0));
}

TEST_F(StepPlannerTest, WhatIsShortenedCostsOnlyWhatIsRead) {
  AddPrompt(100);
  AddPrompt(100);
  const auto pieces = planner_.Plan(sequences_);
  planner_.Shorten(0, 50);
  EXPECT_THAT(pieces, ElementsAre(50, 100));
  planner_.OnStep(planner_.planned(), absl::Milliseconds(182), /*failed=*/false);  // 32 rows for the weights, and 150
  EXPECT_NEAR(absl::ToDoubleMilliseconds(planner_.ShareOf(0)), 16 + 50, 0.1);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(planner_.ShareOf(1)), 16 + 100, 0.1);
}

// One client's prompt is never read as planned, because pages are short. It has had less, so it is first in order.
TEST_F(StepPlannerTest, WhatIsShortenedIsChargedAsWhatIsRead) {
  LearnTheMachine();
  AddPrompt(100'000, "short of pages");
  AddPrompt(100'000, "other");
  for (int i = 0; i < 20; ++i) {
    const auto pieces = planner_.Plan(sequences_);
    EXPECT_TRUE(i < 2 || pieces[0] > 0) << i;
    if (pieces[0] > 0) planner_.Shorten(0, kChunkSize);
    for (size_t k = 0; k < sequences_.size(); ++k) sequences_[k].unread -= pieces[k];
    planner_.OnStep(planner_.planned(), absl::Milliseconds(30), /*failed=*/false);
  }
}

TEST_F(StepPlannerTest, AStepThatFailsIsDividedToo) {
  AddDecoding();
  AddPrompt(100);
  Plan();
  planner_.OnStep(planner_.planned(), absl::Milliseconds(10), /*failed=*/true);
  EXPECT_FALSE(planner_.cost().known());
  EXPECT_EQ(planner_.ShareOf(0), absl::Milliseconds(5));
  EXPECT_EQ(planner_.ShareOf(1), absl::Milliseconds(5)) << "nothing is known of it";
  LearnTheMachine();
  AddDecoding();
  AddPrompt(100);
  Plan();
  const absl::Duration fixed = planner_.cost().fixed();
  planner_.OnStep(planner_.planned(), absl::Seconds(1), /*failed=*/true);
  EXPECT_EQ(planner_.cost().fixed(), fixed) << "it says nothing of others";
  EXPECT_NEAR(absl::FDivDuration(planner_.ShareOf(0) + planner_.ShareOf(1), absl::Seconds(1)), 1, 1e-6);
  EXPECT_GT(planner_.ShareOf(1), planner_.ShareOf(0));
}

TEST(StepPlannerOptions, OutOfRangeAreRefusedByName) {
  EXPECT_TRUE(StepPlanner::Check({}).ok());
  EXPECT_EQ(StepPlanner::Check({.max_rows = 0}).message(), "max_rows is 0, must be at least 1");
  EXPECT_FALSE(StepPlanner::Check({.target_step = absl::ZeroDuration()}).ok());
  EXPECT_FALSE(StepPlanner::Check({.max_slowdown = 1}).ok());
  EXPECT_FALSE(StepPlanner::Check({.min_prefill = 0}).ok());
  EXPECT_FALSE(StepPlanner::Check({.min_prefill = 2}).ok());
  EXPECT_FALSE(StepPlanner::Check({.rounds = {.weights = {0, 0, 0}}}).ok());
}

// A machine so slow, or a step so short, that only one chunk fits.
TEST(StepPlanner, AShortPromptDoesNotWaitForALongOneWhenAStepHasRoomForOneChunkOnly) {
  StepPlanner planner({.max_rows = kChunkSize}, kChunkSize);
  const WorkAttributes attributes;
  std::vector<StepPlanner::Candidate> both = {{.id = 0, .attributes = &attributes, .unread = 3200},
                                              {.id = 1, .attributes = &attributes, .unread = 64}};
  int64_t steps = 0;
  int64_t of_long = 0;
  for (; both[1].unread > 0; ++steps) {
    ASSERT_LT(steps, 20);
    const auto pieces = planner.Plan(both);
    of_long += pieces[0];
    for (size_t i = 0; i < both.size(); ++i) {
      both[i].position += pieces[i];
      both[i].unread -= pieces[i];
    }
    planner.OnStep(planner.planned(), absl::Milliseconds(10), /*failed=*/false);
  }
  EXPECT_EQ(steps, 5) << "four chunks of its own, and every fourth is the other's";
  EXPECT_EQ(of_long, kChunkSize);
}

TEST(StepPlanner, ALongPromptGetsOnHoweverManyShortOnesComeEvenIfAStepIsSmallerThanAChunk) {
  StepPlanner planner({.max_rows = kChunkSize / 2}, kChunkSize);
  const WorkAttributes attributes;
  StepPlanner::Candidate waiting = {.id = 0, .attributes = &attributes, .unread = 3200};
  for (int64_t id = 1; id <= 40; ++id) {  // a new one in every step
    const auto pieces = planner.Plan({{waiting, {.id = id, .attributes = &attributes, .unread = 4}}});
    waiting.position += pieces[0];
    waiting.unread -= pieces[0];
    planner.OnStep(planner.planned(), absl::Milliseconds(10), /*failed=*/false);
  }
  EXPECT_GE(waiting.position, 40 * kChunkSize / 2 / 4 - kChunkSize) << "a quarter, less what is still owed";
}

}  // namespace longshort::core::step_planner_test
