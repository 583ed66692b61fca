#include "core/cache/page_pool.h"

#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort {
namespace {

TEST(PagePool, HandsOutEachPageOnce) {
  PagePool pool("window", 5);
  const auto pages = pool.Acquire(5);
  ASSERT_TRUE(pages.ok());
  EXPECT_THAT(*pages, testing::UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(pool.free(), 0);
  EXPECT_EQ(pool.used(), 5);
}

TEST(PagePool, RefusesMoreThanAreFreeAndTakesNothing) {
  PagePool pool("window", 3);
  ASSERT_TRUE(pool.Acquire(2).ok());
  const auto refused = pool.Acquire(2);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.status().message(), "2 window pages wanted, 1 of 3 are free");
  EXPECT_EQ(pool.free(), 1);
}

TEST(PagePool, HandsOutReturnedPagesAgain) {
  PagePool pool("window", 3);
  const auto first = pool.Acquire(3);
  pool.Release(*first);
  EXPECT_EQ(pool.free(), 3);
  EXPECT_TRUE(pool.Acquire(3).ok());
}

TEST(PagePool, OfNoPagesGivesNone) {
  PagePool pool("window", 0);
  EXPECT_TRUE(pool.Acquire(0).ok());
  EXPECT_FALSE(pool.Acquire(1).ok());
  EXPECT_TRUE(pool.CheckInvariants().ok());
}

TEST(PagePool, CheckFindsAPageReturnedTwice) {
  PagePool pool("segment", 3);
  const auto pages = pool.Acquire(1);
  pool.Release(*pages);
  pool.Release(*pages);
  EXPECT_EQ(pool.CheckInvariants().message(), "segment page 0 is free twice, or free and held");
}

TEST(PagePool, KeepsItsInvariantThroughRandomUse) {
  std::mt19937 random(1);
  PagePool pool("window", 40);
  std::vector<std::vector<PageId>> held;
  for (int event = 0; event < 10000; ++event) {
    if (random() % 2 == 0) {
      auto pages = pool.Acquire(random() % 8);
      if (pages.ok()) held.push_back(*std::move(pages));
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      pool.Release(held.back());
      held.pop_back();
    }
    std::set<PageId> distinct;
    size_t count = 0;
    for (const auto& pages : held) {
      distinct.insert(pages.begin(), pages.end());
      count += pages.size();
    }
    ASSERT_EQ(distinct.size(), count);
    ASSERT_EQ(pool.used(), static_cast<int64_t>(count));
    ASSERT_TRUE(pool.CheckInvariants().ok()) << pool.CheckInvariants();
  }
}

}  // namespace
}  // namespace longshort
