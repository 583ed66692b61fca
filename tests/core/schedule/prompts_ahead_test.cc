#include "core/schedule/step_planner.h"
#include "gtest/gtest.h"

namespace longshort::core::prompts_ahead_test {

TEST(PromptsAhead, LeaveRoomForAnythingWhereNothingIsRead) { EXPECT_TRUE(PromptsAhead({}, 1).LeaveRoomFor(1'000'000)); }

TEST(PromptsAhead, LeaveRoomWhileTheNextStepHasTimeForMore) {
  EXPECT_TRUE(PromptsAhead({{64, 40}, {64, 59}}, 100).LeaveRoomFor(64));
  EXPECT_FALSE(PromptsAhead({{64, 40}, {64, 60}}, 100).LeaveRoomFor(64));
}

// Of three prompts, those with 10 and 50 tokens left are read before one of 50, and the first alone before one of 49.
TEST(PromptsAhead, AreThoseWithAtMostAsMuchLeftToRead) {
  const PromptsAhead prompts({{100, 50}, {100, 100}, {100, 10}}, 60);
  EXPECT_FALSE(prompts.LeaveRoomFor(100));
  EXPECT_FALSE(prompts.LeaveRoomFor(50));
  EXPECT_TRUE(prompts.LeaveRoomFor(49));
  EXPECT_TRUE(prompts.LeaveRoomFor(1));
}

TEST(PromptsAhead, AreNotThoseThatTakeManySteps) {
  EXPECT_FALSE(PromptsAhead({{5000, 10 * PromptsAhead::kLongSteps}}, 10).LeaveRoomFor(1'000'000));
  EXPECT_TRUE(PromptsAhead({{5000, 10 * PromptsAhead::kLongSteps + 1}}, 10).LeaveRoomFor(1'000'000));
}

// However little is left of it to read: it holds its stream until the end.
TEST(PromptsAhead, AreLongIfTheyWereWhenTheyWereStarted) {
  const int64_t steps = PromptsAhead::kLongSteps;
  const PromptsAhead prompts({{10 * steps + 1, 1}, {10 * steps, 10 * steps}, {9000, 8000}}, 10);
  EXPECT_EQ(prompts.LongPrompts("", Priority::kNormal), 2);
  EXPECT_TRUE(prompts.IsLong(10 * steps + 1));
  EXPECT_FALSE(prompts.IsLong(10 * steps));
}

TEST(PromptsAhead, AreCountedFromTheLeastPriorityUp) {
  const PromptsAhead prompts({{9000, 1, Priority::kLow}, {9000, 1, Priority::kHigh}, {9000, 1, Priority::kNormal}}, 10);
  EXPECT_EQ(prompts.LongPrompts("", Priority::kHigh), 1);
  EXPECT_EQ(prompts.LongPrompts("", Priority::kNormal), 2);
  EXPECT_EQ(prompts.LongPrompts("", Priority::kLow), 3);
}

TEST(PromptsAhead, AreCountedForTheirClient) {
  const PromptsAhead prompts({{9000, 1, {}, "a"}, {9000, 1, {}, "b"}, {9000, 1, {}, "a"}}, 10);
  EXPECT_EQ(prompts.LongPrompts("a", {}), 2);
  EXPECT_EQ(prompts.LongPrompts("b", {}), 1);
  EXPECT_EQ(prompts.LongPrompts("c", {}), 0);
}

TEST(PromptsAhead, MayBeLongWhereHalfOfTheStreamsAreLeftForOthers) {
  EXPECT_EQ(PromptsAhead::MaxLong(16, 1), 8);
  EXPECT_EQ(PromptsAhead::MaxLong(16, 3), 2) << "for each of three clients";
  EXPECT_EQ(PromptsAhead::MaxLong(16, 9), 1);
  EXPECT_EQ(PromptsAhead::MaxLong(3, 1), 1);
  EXPECT_EQ(PromptsAhead::MaxLong(1, 1), 1) << "or none would ever be read";
  EXPECT_EQ(PromptsAhead::MaxLong(0, 1), 1) << "a short sequence's cache, which may have room for a long prompt";
}

}  // namespace longshort::core::prompts_ahead_test
