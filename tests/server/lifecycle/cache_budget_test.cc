#include "server/lifecycle/cache_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort {
namespace {

TEST(CacheBudget, TheDefaultIsSixteenStreamsOrWhatFitsInHalf) {
  EXPECT_EQ(*CacheBudget(1000).Reserve("m", 1, 0), 16);
  EXPECT_EQ(*CacheBudget(1000).Reserve("m", 100, 0), 5);
}

TEST(CacheBudget, WhatWasAskedForMayTakeAllButNotMore) {
  EXPECT_EQ(*CacheBudget(1000).Reserve("m", 100, 10), 10);
  const auto refused = CacheBudget(1000).Reserve("m", 100, 11);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), ::testing::AllOf(::testing::HasSubstr("--max-streams is 11"),
                                                                        ::testing::HasSubstr("at most 10 streams")));
}

TEST(CacheBudget, ModelsShareTheMemory) {
  CacheBudget budget(1000);
  EXPECT_EQ(*budget.Reserve("first", 100, 8), 8);
  EXPECT_EQ(budget.Reserve("second", 100, 3).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*budget.Reserve("second", 100, 2), 2);
  EXPECT_EQ(budget.Reserve("third", 100, 0).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CacheBudget, WhatIsSetAsideIsNotForCaches) {
  CacheBudget budget(1000);
  budget.SetAside(400);
  EXPECT_EQ(*budget.Reserve("m", 100, 0), 3);  // half of 600
  EXPECT_EQ(*budget.Reserve("m", 100, 3), 3);
  EXPECT_EQ(budget.Reserve("m", 100, 1).status().code(), absl::StatusCode::kResourceExhausted);
  budget.SetAside(5000);
  EXPECT_EQ(budget.Reserve("m", 1, 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CacheBudget, WhatIsSetAsideAfterwardsIsSeenToo) {
  CacheBudget budget(1000);
  EXPECT_EQ(*budget.Reserve("text", 100, 7), 7);
  budget.SetAside(300);
  EXPECT_TRUE(budget.Check("photos").ok());
  budget.SetAside(1);
  const absl::Status refused = budget.Check("drawings");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("model drawings does not fit"));
}

TEST(CacheBudget, UnknownMemoryRefusesNothing) {
  CacheBudget budget(0);
  budget.SetAside(1000);
  EXPECT_TRUE(budget.Check("m").ok());
  EXPECT_EQ(*budget.Reserve("m", int64_t{1} << 40, 1000), 1000);
}

}  // namespace
}  // namespace longshort
