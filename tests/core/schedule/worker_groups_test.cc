#include "core/schedule/estimators.h"
#include "gtest/gtest.h"

namespace longshort::core::worker_groups_test {

const models::WorkerDevice kFirstGpu = {.kind = models::DeviceKind::kCuda, .index = 0};
const models::WorkerDevice kSecondGpu = {.kind = models::DeviceKind::kCuda, .index = 1};

TEST(WorkerGroups, WorkersOfOneDeviceAreOneGroup) {
  const WorkerGroups groups(std::vector<models::WorkerDevice>{{.threads = 1}, kFirstGpu, {.threads = 2}, kSecondGpu});
  EXPECT_EQ(groups.workers(), 4);
  EXPECT_EQ(groups.count(), 3u);
  EXPECT_EQ(groups.Of(0), groups.Of(2));
  EXPECT_NE(groups.Of(1), groups.Of(0));
  EXPECT_NE(groups.Of(1), groups.Of(3));
}

TEST(WorkerGroups, EqualWorkersShareTimeEqually) {
  const WorkerGroups groups(models::CpuWorkers(3));
  EXPECT_EQ(groups.Shared({absl::Seconds(6)}), absl::Seconds(2));
  EXPECT_EQ(groups.PartOfAll(0, absl::Seconds(3), {absl::Seconds(6)}), absl::Seconds(1));
  EXPECT_EQ(groups.PartOfAll(0, absl::Seconds(3), {absl::ZeroDuration()}), absl::Seconds(1)) << "nothing is known";
}

// Two workers of 1 piece in 4 seconds each, one of 1 piece in half a second: 2.5 pieces a second.
TEST(WorkerGroups, OthersAsFastAsTheyAre) {
  const WorkerGroups groups(std::vector<models::WorkerDevice>{{}, kFirstGpu, {}});
  const std::vector<absl::Duration> times = {absl::Seconds(4), absl::Milliseconds(500)};
  EXPECT_EQ(groups.Shared(times), absl::Milliseconds(400));
  EXPECT_EQ(groups.PartOfAll(groups.Of(0), absl::Seconds(4), times), absl::Milliseconds(400));
  EXPECT_EQ(groups.PartOfAll(groups.Of(1), absl::Seconds(1), times), absl::Milliseconds(800)) << "two pieces";
}

TEST(WorkerGroups, OfWhichNothingIsKnownCountsLikeTheMeanOfTheOthers) {
  const WorkerGroups groups(std::vector<models::WorkerDevice>{{}, kFirstGpu, {}});
  EXPECT_EQ(groups.Shared({absl::Seconds(6), absl::ZeroDuration()}), absl::Seconds(2));
  EXPECT_EQ(groups.Shared({absl::ZeroDuration(), absl::Seconds(6)}), absl::Seconds(2));
  EXPECT_EQ(groups.Shared({absl::ZeroDuration(), absl::ZeroDuration()}), absl::ZeroDuration());
  EXPECT_EQ(groups.PartOfAll(groups.Of(1), absl::Seconds(6), {absl::Seconds(6), absl::ZeroDuration()}),
            absl::Seconds(2));
}

}  // namespace longshort::core::worker_groups_test
