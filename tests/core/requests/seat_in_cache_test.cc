#include <memory>
#include <vector>

#include "core/requests/job.h"
#include "gtest/gtest.h"

namespace longshort::core::seat_in_cache_test {

class GivenUp final : public SessionPages {
 public:
  void Release(const ParkedPlace& place) override { ids.push_back(place.id); }
  std::vector<ParkedId> ids;
};

class SeatInCacheTest : public testing::Test {
 protected:
  const std::shared_ptr<GivenUp> caches_ = std::make_shared<GivenUp>();
};

TEST_F(SeatInCacheTest, TheSessionsRowsAreNotTheJobsToFree) {
  SeatInCache seat(ParkedPlace{.worker = 1, .id = 7}, caches_);
  EXPECT_TRUE(seat.IsWith(1));
  EXPECT_FALSE(seat.IsWith(0));
  EXPECT_EQ(seat.TakeOwn(1), std::nullopt);
  seat.Leave();
  EXPECT_FALSE(seat.place().has_value());
  EXPECT_TRUE(caches_->ids.empty());
}

TEST_F(SeatInCacheTest, ItsOwnRowsAreFreedOnceByTheWorkerThatHasThemOrByTheirCache) {
  SeatInCache seat(std::nullopt, caches_);
  seat.ParkOwn({.worker = 1, .id = 8});
  EXPECT_EQ(seat.TakeOwn(0), std::nullopt);
  EXPECT_EQ(seat.TakeOwn(1), 8U);
  seat.Leave();
  EXPECT_TRUE(caches_->ids.empty());
  seat.ParkOwn({.worker = 1, .id = 9});
  seat.Leave();
  seat.Leave();
  EXPECT_EQ(caches_->ids, std::vector<ParkedId>{9});
}

// A worker whose model was given up has another cache, perhaps at the address of the old one.
TEST_F(SeatInCacheTest, ASearchOfACacheThatIsGoneSaysNothingOfTheNextOne) {
  const SeatInCache seat;
  seat.SearchIn(/*worker=*/2, /*cache=*/5).found = 64;
  EXPECT_EQ(seat.SearchIn(2, 5).found, 64);
  EXPECT_EQ(seat.SearchIn(1, 4).found, 0);
  EXPECT_EQ(seat.SearchIn(2, 6).found, 0);
  EXPECT_EQ(seat.SearchIn(2, 5).found, 0);
}

}  // namespace longshort::core::seat_in_cache_test
