// The token bucket, in simulated time.

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "server/access/identity.h"

namespace longshort::server::rate_limit_test {

constexpr absl::Duration kNone = absl::ZeroDuration();
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

TEST(RateLimit, WithoutARateThereIsAlwaysRoom) {
  RateLimit limit;
  limit.Take(1'000'000'000, kStart);
  EXPECT_EQ(limit.TimeUntilUnit(kStart), kNone);
  EXPECT_EQ(limit.TimeUntilPaid(kStart), kNone);
}

TEST(RateLimit, ASecondsWorthCanBeTakenAtOnceAndThenOneAtATime) {
  RateLimit limit;
  limit.SetRate(10, kStart);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(limit.TimeUntilUnit(kStart), kNone) << i;
    limit.Take(1, kStart);
  }
  EXPECT_EQ(limit.TimeUntilUnit(kStart), absl::Milliseconds(100));
  EXPECT_EQ(limit.TimeUntilUnit(kStart + absl::Milliseconds(30)), absl::Milliseconds(70));
  EXPECT_EQ(limit.TimeUntilUnit(kStart + absl::Milliseconds(100)), kNone);
}

TEST(RateLimit, NoMoreThanASecondIsSavedUp) {
  RateLimit limit;
  limit.SetRate(10, kStart);
  const absl::Time later = kStart + absl::Hours(1);
  limit.Take(1, kStart);
  for (int i = 0; i < 10; ++i) limit.Take(1, later);
  EXPECT_EQ(limit.TimeUntilUnit(later), absl::Milliseconds(100));
}

TEST(RateLimit, ARateBelowOneASecondLetsOneThroughInItsTime) {
  RateLimit limit;
  limit.SetRate(0.1, kStart);
  EXPECT_EQ(limit.TimeUntilUnit(kStart), kNone);
  limit.Take(1, kStart);
  EXPECT_EQ(limit.TimeUntilUnit(kStart), absl::Seconds(10));
  EXPECT_EQ(limit.TimeUntilUnit(kStart + absl::Seconds(10)), kNone);
}

TEST(RateLimit, CallsThatAreRefusedTogetherGetDifferentTimes) {
  RateLimit limit;
  limit.SetRate(10, kStart);
  limit.Take(10, kStart);
  for (int i = 1; i <= 51; ++i) EXPECT_EQ(limit.NextTurn(kStart), absl::Milliseconds(100 * i)) << i;
  EXPECT_EQ(limit.NextTurn(kStart), absl::Milliseconds(100)) << "some of them may never come";
  // Other callers took these units: later turns are still given to one caller each.
  const absl::Time later = kStart + absl::Milliseconds(100);
  limit.Take(1, later);
  EXPECT_EQ(limit.NextTurn(later), absl::Milliseconds(100));
  EXPECT_EQ(limit.NextTurn(later), absl::Milliseconds(200));
  EXPECT_EQ(limit.NextTurn(kStart + absl::Milliseconds(900)), kNone) << "one is there";
}

TEST(RateLimit, ADebtIsPaidBeforeAnythingElse) {
  RateLimit limit;
  limit.SetRate(100, kStart);
  limit.Take(600, kStart);  // a second's worth was there: 500 are owed
  EXPECT_EQ(limit.TimeUntilPaid(kStart), absl::Seconds(5));
  EXPECT_GT(limit.TimeUntilPaid(kStart + absl::Milliseconds(4999)), kNone);
  EXPECT_EQ(limit.TimeUntilPaid(kStart + absl::Seconds(5)), kNone);
}

TEST(Identity, ARefusalSaysTheTimeWhenThereIsRoomAndTakesNothing) {
  Identity identity("alice", "alice");
  identity.SetLimits({.calls_per_second = 2}, kStart);
  EXPECT_TRUE(identity.TakeCall(kStart).ok());
  EXPECT_TRUE(identity.TakeCall(kStart).ok());
  for (const auto& [milliseconds, wait] : {std::pair(500, "500ms"), {1000, "1s"}, {1500, "1.5s"}}) {
    const absl::Status refused = identity.TakeCall(kStart);
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(refused.message(), absl::StrCat("identity alice has used its 2 calls a second; try again in ", wait));
    EXPECT_EQ(core::GetRefusal(refused)->retry_after, absl::Milliseconds(milliseconds));
  }
  EXPECT_FALSE(identity.TakeCall(kStart + absl::Milliseconds(499)).ok());
  EXPECT_TRUE(identity.TakeCall(kStart + absl::Milliseconds(500)).ok());
}

TEST(Identity, TokensThatACallTookTooManyAreWaitedForByTheNext) {
  Identity identity("alice", "alice");
  identity.SetLimits({.tokens_per_second = 1000}, kStart);
  EXPECT_TRUE(identity.TakeCall(kStart).ok());
  identity.TakeTokens(400, kStart);
  EXPECT_TRUE(identity.CheckTokens(kStart).ok());
  identity.TakeTokens(2600, kStart);
  EXPECT_EQ(core::GetRefusal(identity.CheckTokens(kStart))->retry_after, absl::Seconds(2));
  EXPECT_EQ(core::GetRefusal(identity.TakeCall(kStart))->retry_after, absl::Seconds(2));
  EXPECT_TRUE(identity.TakeCall(kStart + absl::Seconds(2)).ok());
}

TEST(Identity, ReturnsTheLongerOfTwoWaits) {
  Identity identity("alice", "alice");
  identity.SetLimits({.calls_per_second = 0.5, .tokens_per_second = 1000}, kStart);
  EXPECT_TRUE(identity.TakeCall(kStart).ok());
  identity.TakeTokens(2000, kStart);
  EXPECT_EQ(core::GetRefusal(identity.TakeCall(kStart))->retry_after, absl::Seconds(2));
  identity.TakeTokens(4000, kStart);
  EXPECT_EQ(core::GetRefusal(identity.TakeCall(kStart))->retry_after, absl::Seconds(5));
}

TEST(Identity, ANewLimitDoesNotForgiveWhatWasTaken) {
  Identity identity("alice", "alice");
  identity.SetLimits({.tokens_per_second = 10}, kStart);
  identity.TakeTokens(10'010, kStart);
  EXPECT_EQ(core::GetRefusal(identity.CheckTokens(kStart))->retry_after, absl::Seconds(1000));
  // Of the 10,010 a second's worth was there, and the others are paid for in 9.01 s.
  identity.SetLimits({.tokens_per_second = 1000}, kStart);
  EXPECT_EQ(core::GetRefusal(identity.CheckTokens(kStart))->retry_after, absl::Milliseconds(9010));
  identity.SetLimits({.tokens_per_second = 100}, kStart);
  EXPECT_EQ(core::GetRefusal(identity.CheckTokens(kStart))->retry_after, absl::Milliseconds(9010))
      << "the longest wait";
  identity.SetLimits({}, kStart);
  EXPECT_TRUE(identity.TakeCall(kStart).ok());
}

}  // namespace longshort::server::rate_limit_test
