#include <memory>
#include <vector>

#include "core/requests/job.h"
#include "gtest/gtest.h"

namespace longshort::core::parked_rows_test {

class RecordingPages final : public SessionPages {
 public:
  void Release(const ParkedPlace& place) override { ids.push_back(place.id); }
  std::vector<ParkedId> ids;
};

class ParkedRowsTest : public testing::Test {
 protected:
  const std::shared_ptr<RecordingPages> caches_ = std::make_shared<RecordingPages>();
};

TEST_F(ParkedRowsTest, TheSessionsRowsAreNotTheJobsToFree) {
  ParkedRows parked_rows(ParkedPlace{.worker = 1, .id = 7}, caches_);
  EXPECT_TRUE(parked_rows.IsWith(1));
  EXPECT_FALSE(parked_rows.IsWith(0));
  EXPECT_EQ(parked_rows.TakeOwn(1), std::nullopt);
  parked_rows.Release();
  EXPECT_FALSE(parked_rows.place().has_value());
  EXPECT_TRUE(caches_->ids.empty());
}

TEST_F(ParkedRowsTest, ItsOwnRowsAreFreedOnceByTheWorkerThatHasThemOrByTheirCache) {
  ParkedRows parked_rows(std::nullopt, caches_);
  parked_rows.ParkOwn({.worker = 1, .id = 8});
  EXPECT_EQ(parked_rows.TakeOwn(0), std::nullopt);
  EXPECT_EQ(parked_rows.TakeOwn(1), 8U);
  parked_rows.Release();
  EXPECT_TRUE(caches_->ids.empty());
  parked_rows.ParkOwn({.worker = 1, .id = 9});
  parked_rows.Release();
  parked_rows.Release();
  EXPECT_EQ(caches_->ids, std::vector<ParkedId>{9});
}

// A worker whose model was discarded has another cache, perhaps at the address of the old one.
TEST_F(ParkedRowsTest, ASearchOfACacheThatIsGoneSaysNothingOfTheNextOne) {
  const ParkedRows parked_rows;
  parked_rows.SearchIn(/*worker=*/2, /*cache=*/5).found = 64;
  EXPECT_EQ(parked_rows.SearchIn(2, 5).found, 64);
  EXPECT_EQ(parked_rows.SearchIn(1, 4).found, 0);
  EXPECT_EQ(parked_rows.SearchIn(2, 6).found, 0);
  EXPECT_EQ(parked_rows.SearchIn(2, 5).found, 0);
}

}  // namespace longshort::core::parked_rows_test
