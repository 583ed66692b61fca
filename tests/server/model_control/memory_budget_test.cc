#include "server/model_control/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort::server::memory_budget_test {

// A budget, and the only share of it.
struct CacheBudget {
  explicit CacheBudget(int64_t bytes) : memory(MemoryBudget(bytes)), share(memory) {}
  absl::StatusOr<int64_t> Reserve(const std::string& model, int64_t wanted, int64_t usual) {
    return TakeForCache(share, model, {.bytes = wanted}, usual);
  }

  const std::shared_ptr<Budget> memory;
  Budget::Share share;
};

TEST(CacheBudget, TheDefaultIsTheUsualOrHalfOfWhatIsLeft) {
  EXPECT_EQ(*CacheBudget(1000).Reserve("m", 0, 16), 16);
  EXPECT_EQ(*CacheBudget(1000).Reserve("m", 0, 1600), 500);
}

TEST(CacheBudget, TheDefaultLeavesSomethingForEveryFurtherModel) {
  CacheBudget budget(1000);
  EXPECT_EQ(*budget.Reserve("first", 0, 1600), 500);
  EXPECT_EQ(*budget.Reserve("first, its next version", 0, 1600), 250);
  budget.share.Add(50);
  EXPECT_EQ(*budget.Reserve("third", 0, 1600), 100);
  EXPECT_EQ(*budget.Reserve("fourth", 100, 1600), 100) << "the other half can be asked for";
}

TEST(CacheBudget, WhatWasAskedForMayTakeAllButNotMore) {
  EXPECT_EQ(*CacheBudget(1000).Reserve("m", 1000, 16), 1000);
  const auto refused = CacheBudget(1000).Reserve("m", 1001, 16);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              ::testing::AllOf(::testing::HasSubstr("cache of model m needs 1001 bytes (--cache-bytes)"),
                               ::testing::HasSubstr("only 1000 bytes")));
}

TEST(CacheBudget, ARefusalNamesWhatSetTheSize) {
  CacheBudget budget(1000);
  const auto of_file = TakeForCache(budget.share, "m", {.bytes = 1001, .source = "cache_bytes in serving.json"}, 16);
  EXPECT_THAT(std::string(of_file.status().message()),
              ::testing::HasSubstr("1001 bytes (cache_bytes in serving.json)"));
  budget.share.Add(1000);
  EXPECT_THAT(std::string(budget.Reserve("m", 0, 16).status().message()),
              ::testing::StartsWith("no memory is left for the cache of model m beside weights"));
}

TEST(CacheBudget, WeightsThatDoNotFitAreRefusedWithTheBytes) {
  CacheBudget budget(100 << 20);
  budget.share.Add(60 << 20);
  EXPECT_TRUE(CheckWeightsFit(*budget.memory, 40 << 20).ok());
  const absl::Status refused = CheckWeightsFit(*budget.memory, (40 << 20) + 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("weights need 40.0 MiB, but only 40.0 MiB of 100.0 MiB"));
  EXPECT_TRUE(CheckWeightsFit(*MemoryBudget(0), int64_t{1} << 60).ok()) << "it is not known how much there is";
}

TEST(CacheBudget, ModelsShareTheMemory) {
  CacheBudget budget(1000);
  EXPECT_EQ(*budget.Reserve("first", 800, 1), 800);
  EXPECT_EQ(budget.Reserve("second", 300, 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(*budget.Reserve("second", 200, 1), 200);
  EXPECT_EQ(budget.Reserve("third", 0, 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CacheBudget, WhatIsSetAsideIsNotForCaches) {
  CacheBudget budget(1000);
  budget.share.Add(400);
  EXPECT_EQ(*budget.Reserve("m", 0, 800), 300);  // half of 600
  EXPECT_EQ(*budget.Reserve("m", 300, 1), 300);
  EXPECT_EQ(budget.Reserve("m", 1, 1).status().code(), absl::StatusCode::kResourceExhausted);
  budget.share.Add(5000);
  EXPECT_EQ(budget.Reserve("m", 1, 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CacheBudget, WhatIsSetAsideAfterwardsIsSeenToo) {
  CacheBudget budget(1000);
  EXPECT_EQ(*budget.Reserve("text", 700, 1), 700);
  budget.share.Add(300);
  EXPECT_TRUE(CheckModelFits(*budget.memory, "photos").ok());
  budget.share.Add(1);
  const absl::Status refused = CheckModelFits(*budget.memory, "drawings");
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("model drawings does not fit"));
}

TEST(CacheBudget, UnknownMemoryRefusesNothing) {
  CacheBudget budget(0);
  budget.share.Add(1000);
  EXPECT_TRUE(CheckModelFits(*budget.memory, "m").ok());
  EXPECT_EQ(*budget.Reserve("m", int64_t{1} << 50, 1), int64_t{1} << 50);
}

TEST(CacheBudget, WhatAModelTookIsGivenBackWithIt) {
  const std::shared_ptr<Budget> memory = MemoryBudget(1000);
  Budget::Share second(memory);
  {
    Budget::Share first(memory);
    first.Add(400);
    EXPECT_EQ(*TakeForCache(first, "first", {600}, 1), 600);
    EXPECT_FALSE(TakeForCache(second, "second", {1}, 1).ok());
    EXPECT_FALSE(TakeForCache(first, "first", {1}, 1).ok());
  }
  EXPECT_EQ(*TakeForCache(second, "second", {1000}, 1), 1000);
}

}  // namespace longshort::server::memory_budget_test
