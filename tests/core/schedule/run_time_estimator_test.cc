#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "core/schedule/estimators.h"
#include "core/schedule/refusal.h"
#include "gtest/gtest.h"

namespace longshort::core::run_time_estimator_test {

TEST(RecentValues, AreTheMinimumAndTheMedianOfTheLastOnes) {
  std::mt19937 random(1);
  RecentValues values;
  std::deque<double> last;
  for (int i = 0; i < 1000; ++i) {
    const double value = static_cast<double>(random() % 20) / 4;  // many are equal
    values.Add(value, absl::UnixEpoch());
    last.push_back(value);
    if (last.size() > RecentValues::kCapacity) last.pop_front();
    std::vector<double> sorted(last.begin(), last.end());
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(values.Min(absl::UnixEpoch()), sorted.front());
    ASSERT_EQ(values.Median(), sorted[(sorted.size() - 1) / 2]);
  }
}

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

constexpr RunShape kShape = {.kind = 1, .units = 100};

TEST(RunTimeEstimator, KnowsNothingOfShapesThatItHasNotSeen) {
  RunTimeEstimator estimator;
  EXPECT_FALSE(estimator.Of(kShape, At(0)).has_value());
  estimator.Learn(kShape, absl::Seconds(1), At(0));
  EXPECT_FALSE(estimator.Of({.kind = 2, .units = 100}, At(0)).has_value());
  EXPECT_FALSE(estimator.Of({.kind = 1, .units = 1000}, At(0)).has_value());
  EXPECT_EQ(estimator.PartOfRun({.kind = 2, .units = 100}), absl::ZeroDuration());
}

TEST(RunTimeEstimator, ScalesWithinAPowerOfTwo) {
  RunTimeEstimator estimator;
  estimator.Learn(kShape, absl::Seconds(1), At(0));
  EXPECT_EQ(estimator.Of({.kind = 1, .units = 64}, At(0))->typical, absl::Milliseconds(640));
  EXPECT_EQ(estimator.PartOfRun({.kind = 1, .units = 10}), absl::Milliseconds(100));
}

TEST(RunTimeEstimator, OneStallChangesNothing) {
  RunTimeEstimator estimator;
  for (int i = 0; i < 4; ++i) estimator.Learn(kShape, absl::Seconds(1 + 0.1 * i), At(i));
  estimator.Learn(kShape, absl::Seconds(100), At(4));
  EXPECT_EQ(estimator.Of(kShape, At(4))->fast, absl::Seconds(1));
  EXPECT_EQ(estimator.Of(kShape, At(4))->typical, absl::Seconds(1.2));
}

TEST(RunTimeEstimator, FollowsAPermanentChange) {
  RunTimeEstimator estimator;
  for (int i = 0; i < 20; ++i) estimator.Learn(kShape, absl::Seconds(1), At(i));
  for (int i = 20; i < 40; ++i) estimator.Learn(kShape, absl::Seconds(3), At(i));
  EXPECT_EQ(estimator.Of(kShape, At(39))->fast, absl::Seconds(3));
  EXPECT_EQ(estimator.Of(kShape, At(39))->typical, absl::Seconds(3));
}

// Everything took 100 times too long for a while, so everything is refused, so nothing new is learned: 2^7 > 100.
TEST(RunTimeEstimator, ForgetsHowSlowItWasWhenNothingRuns) {
  RunTimeEstimator estimator;
  for (int i = 0; i < 100; ++i) estimator.Learn(kShape, absl::Seconds(100), At(i));
  const auto check = [&](double seconds) {
    return CheckDeadline(estimator.Of(kShape, At(seconds))->fast, At(seconds) + absl::Seconds(1), At(seconds));
  };
  EXPECT_EQ(check(99), absl::DeadlineExceededError("the request needs at least 1m40s, but its deadline is in 1s"));
  EXPECT_FALSE(check(99 + 60).ok());
  EXPECT_TRUE(check(99 + 70).ok());
}

TEST(RunTimeEstimator, LearnsOnlySoManyKinds) {
  RunTimeEstimator estimator;
  for (int64_t kind = 0; kind < 100'000; ++kind) estimator.Learn({.kind = kind, .units = 1}, absl::Seconds(1), At(0));
  EXPECT_TRUE(estimator.Of({.kind = 99'999, .units = 1}, At(0)).has_value());
  EXPECT_FALSE(estimator.Of({.kind = 5, .units = 1}, At(0)).has_value());
}

TEST(RunTimeEstimator, ForgetsTheKindThatHasNotRunForTheLongestTime) {
  RunTimeEstimator estimator;
  for (int64_t kind = 1; kind < 1000; ++kind) {
    estimator.Learn({.kind = 0, .units = 1}, absl::Seconds(1), At(kind));  // the usual
    estimator.Learn({.kind = kind, .units = 1}, absl::Seconds(1), At(kind));
  }
  EXPECT_TRUE(estimator.Of({.kind = 0, .units = 1}, At(1000)).has_value());
  EXPECT_FALSE(estimator.Of({.kind = 500, .units = 1}, At(1000)).has_value());
}

// A worker on the CPU that takes 8 seconds, and one on a GPU that takes 2.
class RunTimeEstimatesTest : public testing::Test {
 protected:
  void TeachSlow() { estimates_.Of(0).Learn(kShape, absl::Seconds(8), At(0)); }
  void TeachFast() { estimates_.Of(1).Learn(kShape, absl::Seconds(2), At(0)); }

  RunTimeEstimatorPerDevice estimates_{
      std::vector<models::WorkerDevice>{{.kind = models::DeviceKind::kCpu}, {.kind = models::DeviceKind::kCuda}}};
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
  EXPECT_FALSE(estimates_.Fastest(kShape, At(0)).has_value());
  TeachFast();
  EXPECT_EQ(estimates_.Fastest(kShape, At(0)), absl::Seconds(2));
}

}  // namespace longshort::core::run_time_estimator_test
