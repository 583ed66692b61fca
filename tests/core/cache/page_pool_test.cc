#include "core/cache/page_pool.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::page_pool_test {

class PagePoolTest : public testing::Test {
 protected:
  models::PageId Take() { return pool_.Take().value(); }
  // A page that only the index holds.
  models::PageId TakeSpare() {
    const models::PageId page = Take();
    pool_.Hold(page, Holder::kIndex);
    pool_.Release(page, Holder::kRunning);
    return page;
  }

  UseClock clock_;
  PagePool pool_{"window", 3, clock_};
};

TEST_F(PagePoolTest, APageIsFreeUntilTakenAndAfterItsLastRelease) {
  const models::PageId page = Take();
  EXPECT_EQ(pool_.in_use(), 1);
  EXPECT_TRUE(pool_.IsExclusive(page));
  pool_.Hold(page, Holder::kRunning);
  EXPECT_FALSE(pool_.IsExclusive(page));
  pool_.Release(page, Holder::kRunning);
  EXPECT_EQ(pool_.in_use(), 1);
  pool_.Release(page, Holder::kRunning);
  EXPECT_EQ(pool_.free(), 3);
}

TEST_F(PagePoolTest, APageThatOnlyParkedSequencesOrTheIndexHoldIsIdle) {
  const models::PageId page = Take();
  pool_.Hold(page, Holder::kParked);
  EXPECT_EQ(pool_.idle(), 0);
  pool_.Release(page, Holder::kRunning);
  EXPECT_EQ(pool_.idle(), 1);
  EXPECT_EQ(pool_.in_use(), 0);
  pool_.Hold(page, Holder::kRunning);
  EXPECT_EQ(pool_.idle(), 0);
}

TEST_F(PagePoolTest, SparePagesAreEvictedInTheOrderOfTheirLastUse) {
  const models::PageId first = TakeSpare(), second = TakeSpare(), third = TakeSpare();
  pool_.Hold(first, Holder::kRunning);  // used again
  pool_.Release(first, Holder::kRunning);
  EXPECT_EQ(Take(), second);
  EXPECT_EQ(Take(), third);
  EXPECT_EQ(Take(), first);
  EXPECT_FALSE(pool_.Take().has_value());
  EXPECT_EQ(pool_.evicted(), 3);
}

TEST_F(PagePoolTest, FreePagesGoBeforeSpareOnes) {
  const models::PageId spare = TakeSpare();
  Take();
  EXPECT_NE(Take(), spare);
  EXPECT_EQ(pool_.evicted(), 0);
}

TEST_F(PagePoolTest, WhatAnEndNeedsOrAParkedSequenceHoldsIsNotEvicted) {
  const models::PageId needed = TakeSpare(), parked = TakeSpare();
  pool_.Need(needed);
  pool_.Hold(parked, Holder::kParked);
  Take();
  EXPECT_FALSE(pool_.Take().has_value());
  pool_.NoLongerNeed(needed);
  EXPECT_EQ(Take(), needed);
  pool_.Release(parked, Holder::kParked);
  EXPECT_EQ(Take(), parked);
}

TEST_F(PagePoolTest, AVersionEndsWhenThePageIsTakenAgain) {
  const models::PageId page = TakeSpare();
  const PageVersion version = pool_.VersionOf(page);
  Take();
  Take();
  EXPECT_TRUE(pool_.IsCurrent(version));
  EXPECT_EQ(Take(), page);
  EXPECT_FALSE(pool_.IsCurrent(version));
  EXPECT_FALSE(pool_.IsCurrent(PageVersion()));
}

TEST_F(PagePoolTest, ANewVersionOfAPageThatRunsLeavesItToTheSequenceAlone) {
  const models::PageId page = Take();
  pool_.Hold(page, Holder::kIndex);
  const PageVersion version = pool_.VersionOf(page);
  EXPECT_FALSE(pool_.IsExclusive(page));
  pool_.StartNewVersion(page);
  EXPECT_TRUE(pool_.IsExclusive(page));
  EXPECT_FALSE(pool_.IsCurrent(version));
}

TEST_F(PagePoolTest, TheZeroPageNeedsNoHolding) {
  pool_.Hold(models::kZeroPage, Holder::kRunning);
  pool_.Release(models::kZeroPage, Holder::kParked);
  pool_.Need(models::kZeroPage);
  EXPECT_EQ(pool_.free(), 3);
}

TEST_F(PagePoolTest, TheWalkFindsWhoDoesNotHoldWhatItSays) {
  const models::PageId page = Take();
  std::vector<PageHolders> holders(3);
  EXPECT_EQ(pool_.CheckInvariants(holders).code(), absl::StatusCode::kInternal);
  holders[page].running = 1;
  EXPECT_TRUE(pool_.CheckInvariants(holders).ok());
}

}  // namespace longshort::core::page_pool_test
