#include "core/schedule/deadline_check.h"

#include <gtest/gtest.h>

namespace longshort {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(CheckDeadline, AdmitsWhatCanJustBeDone) {
  EXPECT_TRUE(CheckDeadline(absl::Seconds(2), kNow + absl::Seconds(2), kNow).ok());
  EXPECT_TRUE(CheckDeadline(absl::Seconds(2), absl::InfiniteFuture(), kNow).ok());
}

TEST(CheckDeadline, SaysHowMuchTimeRemains) {
  EXPECT_EQ(CheckDeadline(absl::Seconds(2), kNow + absl::Seconds(1), kNow),
            absl::DeadlineExceededError("the request would take at least 2s, and 1s remain until its deadline"));
}

TEST(CheckDeadline, SaysThatTheDeadlineHasPassed) {
  EXPECT_EQ(CheckDeadline(absl::Seconds(2), kNow - absl::Microseconds(400), kNow),
            absl::DeadlineExceededError("the request would take at least 2s, and its deadline has passed, 400us ago"));
}

}  // namespace
}  // namespace longshort
