#include "core/schedule/run_time_estimates.h"

#include "gtest/gtest.h"

namespace longshort {
namespace {

constexpr RunShape kShape = {.kind = 1, .units = 4};
const absl::Time kNow = absl::UnixEpoch();

// A worker on the CPU that takes 8 seconds, and one on a GPU that takes 2.
class RunTimeEstimatesTest : public testing::Test {
 protected:
  void TeachSlow() { estimates_.Of(0).Learn(kShape, absl::Seconds(8), kNow); }
  void TeachFast() { estimates_.Of(1).Learn(kShape, absl::Seconds(2), kNow); }

  RunTimeEstimates estimates_{std::vector<WorkerDevice>{{.kind = DeviceKind::kCpu}, {.kind = DeviceKind::kCuda}}};
};

TEST_F(RunTimeEstimatesTest, AddSpeeds) {
  TeachSlow();
  TeachFast();
  EXPECT_EQ(estimates_.PartOfRun(kShape), absl::Milliseconds(1600));  // 1/8 + 1/2 runs a second
  EXPECT_EQ(estimates_.PartOfAll(0, kShape, absl::Seconds(8)), absl::Milliseconds(1600));
  EXPECT_EQ(estimates_.PartOfAll(1, kShape, absl::Seconds(2)), absl::Milliseconds(1600));
}

TEST_F(RunTimeEstimatesTest, TheFastestWorkerSaysWhatCannotBeDoneOnceAllAreKnown) {
  TeachSlow();
  EXPECT_FALSE(estimates_.Fastest(kShape, kNow).has_value());
  TeachFast();
  EXPECT_EQ(estimates_.Fastest(kShape, kNow), absl::Seconds(2));
}

}  // namespace
}  // namespace longshort
