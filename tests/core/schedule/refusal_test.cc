#include "core/schedule/refusal.h"

#include "gtest/gtest.h"

namespace longshort::core::refusal_test {

constexpr WorkOrder::Load Load(int64_t waiting, absl::Duration cost) {
  return {.waiting = waiting, .waiting_cost = cost};
}

TEST(WaitingLimits, RefuseByCountSayingWhenToComeBackAndHowLongTheLineIs) {
  const absl::Status full = CheckRoom({.max_queued = 3}, Load(3, absl::Seconds(2)), Load(0, {}), WorkAttributes());
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(), "the queue is full: 3 requests wait before this one, the limit is 3");
  ASSERT_TRUE(GetRefusal(full).has_value());
  EXPECT_EQ(GetRefusal(full)->retry_after, absl::Seconds(2));
  EXPECT_EQ(GetRefusal(full)->queue_depth, 3);
  EXPECT_TRUE(CheckRoom({.max_queued = 3}, Load(2, absl::Seconds(2)), Load(0, {}), WorkAttributes()).ok());
}

TEST(WaitingLimits, RefuseByPredictedTimeUnlessTheQueueIsEmpty) {
  const WaitingLimits limits = {.max_queued_cost = absl::Seconds(5)};
  const WorkAttributes more = {.cost = absl::Seconds(3)};
  EXPECT_TRUE(CheckRoom(limits, Load(1, absl::Seconds(2)), Load(0, {}), more).ok());
  EXPECT_EQ(
      CheckRoom(limits, Load(1, absl::Seconds(2.5)), Load(0, {}), more).message(),
      "the queue is full: the requests that wait before this one will take 2.5s and this one 3s, the limit is 5s");
  EXPECT_TRUE(CheckRoom(limits, Load(0, {}), Load(0, {}), {.cost = absl::Hours(1)}).ok());
  EXPECT_TRUE(CheckRoom(limits, Load(1, absl::Seconds(9)), Load(0, {}), WorkAttributes()).ok())
      << "nothing is known of it";
}

TEST(WaitingLimits, RefuseAClientThatHasItsShareInTheLine) {
  const WaitingLimits limits = {.max_queued_per_client = 2, .max_queued_cost_per_client = absl::Seconds(1)};
  const WorkAttributes more = {.cost = absl::Milliseconds(600)};
  EXPECT_EQ(CheckRoom(limits, Load(9, absl::Seconds(4)), Load(2, {}), more).message(),
            "the queue is full: 2 requests of this client wait, the limit is 2");
  const absl::Status long_work = CheckRoom(limits, Load(9, absl::Seconds(4)), Load(1, absl::Seconds(0.5)), more);
  EXPECT_EQ(
      long_work.message(),
      "the queue is full: the requests of this client that wait will take 500ms and this one 600ms, the limit is 1s");
  EXPECT_EQ(GetRefusal(long_work)->queue_depth, 9);
  EXPECT_TRUE(CheckRoom(limits, Load(9, absl::Seconds(4)), Load(0, {}), more).ok());
}

TEST(WaitingLimits, ACallIsTakenOrRefusedAsAWhole) {
  const WaitingLimits limits = {.max_queued = 10, .max_queued_cost = absl::Seconds(5)};
  const auto part = [](int64_t index, absl::Duration cost) {
    return WorkAttributes{.cost = cost, .position_in_call = {.index = index, .count = 8, .share = 0.125}};
  };
  EXPECT_TRUE(CheckRoom(limits, Load(0, {}), Load(0, {}), part(0, absl::Hours(1))).ok()) << "nothing else waits";
  for (int64_t i = 1; i < 8; ++i) {
    EXPECT_TRUE(CheckRoom(limits, Load(i, absl::Hours(i)), Load(i, absl::Hours(i)), part(i, absl::Hours(1))).ok());
  }
  EXPECT_TRUE(CheckRoom(limits, Load(1, absl::Seconds(1)), Load(0, {}), part(0, absl::Seconds(0.5))).ok());
  EXPECT_EQ(
      CheckRoom(limits, Load(1, absl::Seconds(1.5)), Load(0, {}), part(0, absl::Seconds(0.5))).message(),
      "the queue is full: the requests that wait before this one will take 1.5s and this one 4s, the limit is 5s");
  EXPECT_TRUE(CheckRoom(limits, Load(2, {}), Load(0, {}), part(0, {})).ok());
  EXPECT_FALSE(CheckRoom(limits, Load(3, {}), Load(0, {}), part(0, {})).ok());
  EXPECT_FALSE(CheckRoom(limits, Load(10, {}), Load(0, {}), part(7, {})).ok()) << "others came in between";
}

TEST(WaitingLimits, ACallAsksForAllOfItsWorkHoweverSmallItsFirstPartIs) {
  const WaitingLimits limits = {.max_queued_cost = absl::Seconds(5)};
  const WorkAttributes small = {.cost = absl::Milliseconds(1),
                                .position_in_call = {.index = 0, .count = 2, .share = 0.00025}};
  EXPECT_TRUE(CheckRoom(limits, Load(1, absl::Seconds(1)), Load(0, {}), small).ok());
  EXPECT_EQ(CheckRoom(limits, Load(1, absl::Seconds(2)), Load(0, {}), small).message(),
            "the queue is full: the requests that wait before this one will take 2s and this one 4s, the limit is 5s");
}

TEST(WaitingLimits, OutOfRangeAreRefused) {
  EXPECT_TRUE(CheckLimits({}).ok());
  EXPECT_FALSE(CheckLimits({.max_queued = 0}).ok());
  EXPECT_FALSE(CheckLimits({.max_queued_per_client = 0}).ok());
  EXPECT_FALSE(CheckLimits({.max_queued_cost = absl::ZeroDuration()}).ok());
  EXPECT_FALSE(CheckLimits({.max_queued_cost_per_client = absl::ZeroDuration()}).ok());
}

TEST(Refusal, IsCarriedByAStatusAndAbsentFromOthers) {
  absl::Status status = absl::ResourceExhaustedError("full");
  EXPECT_FALSE(GetRefusal(status).has_value());
  SetRefusal(status, {.retry_after = absl::Microseconds(1500), .queue_depth = 7});
  const absl::Status copy = status;
  EXPECT_EQ(GetRefusal(copy)->retry_after, absl::Microseconds(1500));
  EXPECT_EQ(GetRefusal(copy)->queue_depth, 7);
  EXPECT_EQ(copy.message(), "full");
}

TEST(Refusal, ClientsAreNotSentBackAtOnceWhenNothingIsKnownOfTheWork) {
  EXPECT_GE(GetRefusal(RefuseForNow(Load(8, {}), "full"))->retry_after, absl::Milliseconds(50));
}

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(CheckDeadline, AdmitsWhatCanJustBeDone) {
  EXPECT_TRUE(CheckDeadline(absl::Seconds(2), kNow + absl::Seconds(2), kNow).ok());
  EXPECT_TRUE(CheckDeadline(absl::Seconds(2), absl::InfiniteFuture(), kNow).ok());
}

TEST(CheckDeadline, SaysHowMuchTimeRemains) {
  EXPECT_EQ(CheckDeadline(absl::Seconds(2), kNow + absl::Seconds(1), kNow),
            absl::DeadlineExceededError("the request needs at least 2s, but its deadline is in 1s"));
}

TEST(CheckDeadline, SaysThatTheDeadlineHasPassed) {
  EXPECT_EQ(CheckDeadline(absl::Seconds(2), kNow - absl::Microseconds(400), kNow),
            absl::DeadlineExceededError("the request needs at least 2s, but its deadline passed 400us ago"));
}

}  // namespace longshort::core::refusal_test
