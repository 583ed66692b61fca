#include <gtest/gtest.h>

#include "base/random_number.h"
#include "server/monitoring/tracer.h"

namespace longshort::server::monitoring_sampler_test {

constexpr int kTraces = 100'000;

TraceId SomeId() { return {RandomNumber(), RandomNumber()}; }

TEST(TraceSampler, RecordsAllOrNothing) {
  const TraceSampler all(1, true);
  const TraceSampler nothing(0, true);
  for (const uint64_t low : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{0xFF} << 56}) {
    EXPECT_TRUE(all.Samples({1, low}, std::nullopt));
    EXPECT_FALSE(nothing.Samples({1, low}, std::nullopt));
  }
}

TEST(TraceSampler, RecordsTheRatio) {
  for (const double ratio : {0.01, 0.3, 0.9}) {
    const TraceSampler sampler(ratio, true);
    int sampled = 0;
    for (int i = 0; i < kTraces; ++i) sampled += sampler.Samples(SomeId(), std::nullopt) ? 1 : 0;
    // Five standard deviations are at most 0.008.
    EXPECT_NEAR(static_cast<double>(sampled) / kTraces, ratio, 0.008);
  }
}

TEST(TraceSampler, AHigherRatioRecordsWhatALowerOneDoes) {
  const TraceSampler low(0.2, true);
  const TraceSampler high(0.6, true);
  for (int i = 0; i < kTraces; ++i) {
    const TraceId id = SomeId();
    EXPECT_LE(low.Samples(id, std::nullopt), high.Samples(id, std::nullopt));
  }
}

// The 7 bytes at the end are 0x80... and more: the upper half of all numbers, as OpenTelemetry has it (R >= T).
TEST(TraceSampler, TheLast7BytesOfTheIdDecide) {
  const TraceSampler half(0.5, true);
  EXPECT_TRUE(half.Samples({0, 0x0080'0000'0000'0000}, std::nullopt));
  EXPECT_FALSE(half.Samples({0, 0x007F'FFFF'FFFF'FFFF}, std::nullopt));
  EXPECT_FALSE(half.Samples({~uint64_t{0}, 0xFF7F'FFFF'FFFF'FFFF}, std::nullopt));
}

TEST(TraceSampler, AParentDecides) {
  TraceContext parent{.trace_id = {1, 1}, .span_id = {1}};
  for (const double ratio : {0.0, 1.0}) {
    parent.sampled = false;
    EXPECT_FALSE(TraceSampler(ratio, true).Samples(parent.trace_id, parent));
    parent.sampled = true;
    EXPECT_TRUE(TraceSampler(ratio, true).Samples(parent.trace_id, parent));
  }
}

TEST(TraceSampler, AParentDoesNotMatterToOneThatIsNotParentBased) {
  const TraceContext parent{.trace_id = {1, 1}, .span_id = {1}, .sampled = true};
  EXPECT_FALSE(TraceSampler(0, false).Samples(parent.trace_id, parent));
}

}  // namespace longshort::server::monitoring_sampler_test
