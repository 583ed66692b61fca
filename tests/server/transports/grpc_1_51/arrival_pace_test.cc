#include "server/transports/grpc_1_51/arrival_pace.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace longshort::server::arrival_pace_test {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

// The seconds that a new connection waits; nullopt if it is to be closed.
std::optional<double> Wait(ArrivalPace& pace, const std::string& address, absl::Time now) {
  const std::optional<absl::Time> begin = pace.Begin(address, now);
  if (!begin.has_value()) return std::nullopt;
  return absl::ToDoubleSeconds(*begin - now);
}

TEST(ArrivalPace, NobodyWaitsBeforeAnAbuse) {
  ArrivalPace pace;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart), 0);
}

TEST(ArrivalPace, ConnectionsOfAnAbusiveAddressComeOneAfterTheOther) {
  ArrivalPace pace;
  pace.Abused("ipv4:127.0.0.1", AbuseKind::kBytes, kStart);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart), 0.1);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart), 0.2);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.2", kStart), 0);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart + absl::Seconds(5)), 0);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart + absl::Seconds(5)), 0.1);
}

TEST(ArrivalPace, TooManyThatWaitAreClosed) {
  ArrivalPace pace;
  pace.Abused("ipv4:127.0.0.1", AbuseKind::kBytes, kStart);
  int waiting = 0;
  while (waiting < 1000 && Wait(pace, "ipv4:127.0.0.1", kStart).has_value()) ++waiting;
  EXPECT_EQ(waiting, 99);
  EXPECT_TRUE(Wait(pace, "ipv4:127.0.0.1", kStart + absl::Seconds(1)).has_value());
}

TEST(ArrivalPace, ManyCallsCostMore) {
  ArrivalPace pace;
  pace.Abused("ipv4:127.0.0.1", AbuseKind::kCalls, kStart);
  pace.Abused("ipv4:127.0.0.1", AbuseKind::kBytes, kStart);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart), 1);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart), 1.5);
}

TEST(ArrivalPace, AStallCostsMore) {
  ArrivalPace pace;
  pace.Abused("ipv4:127.0.0.1", AbuseKind::kStalled, kStart);
  EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart), 5);
}

TEST(ArrivalPace, AnAddressIsForgiven) {
  ArrivalPace pace;
  pace.Abused("ipv4:127.0.0.1", AbuseKind::kPings, kStart);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Wait(pace, "ipv4:127.0.0.1", kStart + absl::Seconds(11)), 0);
}

TEST(ArrivalPace, ManyAddressesDoNotGrowItWithoutEnd) {
  ArrivalPace pace;
  for (int i = 0; i < 10'000; ++i) pace.Abused(absl::StrCat("ipv6:", i), AbuseKind::kBytes, kStart);
  EXPECT_EQ(Wait(pace, "ipv6:0", kStart), 0.1);
  EXPECT_EQ(Wait(pace, "ipv6:9999", kStart), 0);
  pace.Abused("ipv6:9999", AbuseKind::kBytes, kStart + absl::Seconds(11));
  EXPECT_EQ(Wait(pace, "ipv6:9999", kStart + absl::Seconds(11)), 0.1);
}

}  // namespace longshort::server::arrival_pace_test
