#include "clients/cpp/retry_delay.h"

#include "gtest/gtest.h"

namespace longshort {
namespace {

TEST(RetryDelay, WaitsGrowToTenSecondsAndAreNeverEqualForAll) {
  RetryDelay delay;
  for (const double whole : {0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0}) {
    const absl::Duration wait = delay.Next(std::nullopt);
    EXPECT_GE(wait, absl::Seconds(whole / 2));
    EXPECT_LE(wait, absl::Seconds(whole));
  }
  delay.Reset();
  EXPECT_LE(delay.Next(std::nullopt), absl::Seconds(0.5));
  absl::Duration shortest = absl::Seconds(10);
  absl::Duration longest;
  for (int i = 0; i < 100; ++i) {
    delay.Reset();
    const absl::Duration wait = delay.Next(std::nullopt);
    shortest = std::min(shortest, wait);
    longest = std::max(longest, wait);
  }
  EXPECT_GT(longest - shortest, absl::Milliseconds(50));
}

TEST(RetryDelay, NobodyComesSoonerThanTold) {
  RetryDelay delay;
  for (int i = 0; i < 20; ++i) {
    const absl::Duration wait = delay.Next(absl::Minutes(1));
    EXPECT_GE(wait, absl::Minutes(1));
    EXPECT_LE(wait, absl::Seconds(66));
  }
}

TEST(RetryDelay, OnlyWhatMayPassIsWaitedFor) {
  EXPECT_TRUE(MayPass(absl::UnavailableError("Connection refused")));
  EXPECT_TRUE(MayPass(absl::ResourceExhaustedError("the server is full")));
  EXPECT_FALSE(MayPass(absl::ResourceExhaustedError("Received message larger than max (5 vs. 4)")));
  EXPECT_FALSE(MayPass(absl::UnavailableError("Ssl handshake failed: CERTIFICATE_VERIFY_FAILED")));
  EXPECT_FALSE(MayPass(absl::InvalidArgumentError("wrong")));
  EXPECT_FALSE(MayPass(absl::CancelledError("")));
  EXPECT_FALSE(MayPass(absl::DeadlineExceededError("")));
  EXPECT_FALSE(MayPass(absl::OkStatus()));
}

}  // namespace
}  // namespace longshort
