#include "core/schedule/prompts_ahead.h"

#include "gtest/gtest.h"

namespace longshort {
namespace {

TEST(PromptsAhead, LeaveRoomForAnythingWhereNothingIsRead) { EXPECT_TRUE(PromptsAhead({}, 1).LeaveRoomFor(1'000'000)); }

TEST(PromptsAhead, LeaveRoomWhileTheNextStepHasTimeForMore) {
  EXPECT_TRUE(PromptsAhead({40, 59}, 100).LeaveRoomFor(64));
  EXPECT_FALSE(PromptsAhead({40, 60}, 100).LeaveRoomFor(64));
}

// Of three prompts, those with 10 and 50 tokens left are read before one of 50, and the first alone before one of 49.
TEST(PromptsAhead, AreThoseWithNoMoreLeftToReadThanItHasItself) {
  const PromptsAhead prompts({50, 100, 10}, 60);
  EXPECT_FALSE(prompts.LeaveRoomFor(100));
  EXPECT_FALSE(prompts.LeaveRoomFor(50));
  EXPECT_TRUE(prompts.LeaveRoomFor(49));
  EXPECT_TRUE(prompts.LeaveRoomFor(1));
}

TEST(PromptsAhead, AreNotThoseThatTakeManySteps) {
  EXPECT_FALSE(PromptsAhead({10 * PromptsAhead::kLongSteps}, 10).LeaveRoomFor(1'000'000));
  EXPECT_TRUE(PromptsAhead({10 * PromptsAhead::kLongSteps + 1}, 10).LeaveRoomFor(1'000'000));
}

}  // namespace
}  // namespace longshort
