#include "gtest/gtest.h"
#include "tools/load/summary.h"

namespace longshort::load::distribution_test {

TEST(Distribution, PercentilesAreSamplesByNearestRank) {
  std::vector<absl::Duration> samples;
  for (int i = 200; i >= 1; --i) samples.push_back(absl::Milliseconds(i));
  const Distribution distribution(samples);
  EXPECT_EQ(distribution.count(), 200);
  EXPECT_EQ(distribution.Percentile(0), absl::Milliseconds(1));
  // Half of 200 samples are not above the 100th; 99 % not above the 198th.
  EXPECT_EQ(distribution.Percentile(50), absl::Milliseconds(100));
  EXPECT_EQ(distribution.Percentile(99), absl::Milliseconds(198));
  EXPECT_EQ(distribution.Percentile(99.1), absl::Milliseconds(199));
  EXPECT_EQ(distribution.Max(), absl::Milliseconds(200));
  EXPECT_EQ(distribution.Mean(), absl::Microseconds(100500));
}

TEST(Distribution, OneSlowCallIsTheWholeTail) {
  std::vector<absl::Duration> samples(99, absl::Milliseconds(1));
  samples.push_back(absl::Seconds(7));
  const Distribution distribution(samples);
  EXPECT_EQ(distribution.Percentile(99), absl::Milliseconds(1));
  EXPECT_EQ(distribution.Percentile(99.01), absl::Seconds(7));
}

TEST(Distribution, TheRankOfAPercentageThatIsNoBinaryFractionIsExact) {
  std::vector<absl::Duration> samples;
  for (int i = 1; i <= 3000; ++i) samples.push_back(absl::Milliseconds(i));
  EXPECT_EQ(Distribution(samples).Percentile(99.9), absl::Milliseconds(2997));
  samples.resize(100);
  EXPECT_EQ(Distribution(samples).Percentile(7), absl::Milliseconds(7));
}

TEST(Distribution, WithoutSamplesEverythingIsZero) {
  EXPECT_EQ(Distribution().count(), 0);
  EXPECT_EQ(Distribution().Mean(), absl::ZeroDuration());
  EXPECT_EQ(Distribution().Percentile(99), absl::ZeroDuration());
}

}  // namespace longshort::load::distribution_test
