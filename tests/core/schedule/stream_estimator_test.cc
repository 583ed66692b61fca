#include "core/schedule/estimators.h"
#include "gtest/gtest.h"

namespace longshort::core::stream_estimator_test {

const absl::Time kNow = absl::UnixEpoch();

// Two workers on the CPU, and one on a GPU that is ten times as fast.
class StreamEstimatesTest : public testing::Test {
 protected:
  // So long a row, of any kind and however few there are.
  void TeachSteps(int worker, absl::Duration row) {
    StepCost cost;
    for (int64_t rows = 1; rows <= 2000; rows += 100) {
      cost.Learn({.prefill = rows}, row * rows);
      cost.Learn({.decoding = rows}, row * rows);
    }
    estimates_.Of(worker).SetSteps(cost, 1);
  }
  void TeachRequest(int worker, absl::Duration all) {
    estimates_.Of(worker).Learn({.prompt = 1000, .generated = 0}, {.prefill = all, .all = all}, /*others_wait=*/true,
                                kNow);
  }
  void TeachAll() {
    TeachSteps(0, absl::Milliseconds(1));
    TeachRequest(0, absl::Seconds(1));
    TeachSteps(1, absl::Microseconds(100));
    TeachRequest(1, absl::Milliseconds(100));
  }

  StreamEstimatorPerDevice estimates_{std::vector<models::WorkerDevice>{
      {.kind = models::DeviceKind::kCpu}, {.kind = models::DeviceKind::kCuda}, {.kind = models::DeviceKind::kCpu}}};
  const StreamTokens kTokens = {.prompt = 1000, .generated = 0};
};

TEST_F(StreamEstimatesTest, KnowNothingAtFirst) {
  EXPECT_FALSE(estimates_.knows_steps());
  EXPECT_EQ(estimates_.Cost(kTokens), absl::ZeroDuration());
  EXPECT_FALSE(estimates_.FastPrefill(1000, kNow).has_value());
}

TEST_F(StreamEstimatesTest, AddSpeeds) {
  TeachAll();
  // 1, 1 and 10 requests a second.
  EXPECT_NEAR(absl::ToDoubleSeconds(estimates_.Cost(kTokens)), 1.0 / 12, 0.01);
  // The part of it does not depend on who did it.
  const double slow = absl::ToDoubleSeconds(estimates_.PartOfAll(2, kTokens, absl::Seconds(1)));
  const double fast = absl::ToDoubleSeconds(estimates_.PartOfAll(1, kTokens, absl::Milliseconds(100)));
  EXPECT_NEAR(slow, 1.0 / 12, 0.01);
  EXPECT_NEAR(fast, 1.0 / 12, 0.01);
}

TEST_F(StreamEstimatesTest, TheFastestWorkerSaysWhatCannotBeDone) {
  TeachAll();
  EXPECT_NEAR(absl::ToDoubleSeconds(*estimates_.FastPrefill(1000, kNow)), 0.1, 0.01);
}

TEST_F(StreamEstimatesTest, NoDeadlineIsOutOfReachWhileAWorkerIsUnknown) {
  TeachSteps(0, absl::Milliseconds(1));
  TeachRequest(0, absl::Seconds(1));
  EXPECT_TRUE(estimates_.knows_steps());
  EXPECT_NEAR(absl::ToDoubleSeconds(estimates_.Cost(kTokens)), 1.0 / 3, 0.03) << "the third counts like the two";
  EXPECT_FALSE(estimates_.FastPrefill(1000, kNow).has_value());
}

TEST_F(StreamEstimatesTest, AFasterWorkerHasLessToDoWithAsMany) {
  EXPECT_EQ(estimates_.Load(1, 5), estimates_.Load(0, 5)) << "nothing is known";
  TeachAll();
  EXPECT_LT(estimates_.Load(1, 5), estimates_.Load(0, 1));
  EXPECT_GT(estimates_.Load(1, 15), estimates_.Load(0, 1));
  EXPECT_EQ(estimates_.Load(0, 3), estimates_.Load(2, 3));
}

}  // namespace longshort::core::stream_estimator_test
