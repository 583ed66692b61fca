#include <gtest/gtest.h>

#include "server/call/unread_answers.h"

namespace longshort::server::write_timer_test {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(WriteTimer, AWriteIsStuckAfterTheTimeout) {
  WriteTimer timer(absl::Seconds(30));
  timer.Begin(kStart);
  EXPECT_TRUE(timer.writing());
  EXPECT_FALSE(timer.IsStuck(kStart + absl::Milliseconds(29999)));
  EXPECT_TRUE(timer.IsStuck(kStart + absl::Seconds(30)));
}

TEST(WriteTimer, WithoutAWriteNothingIsStuck) {
  WriteTimer timer(absl::Seconds(30));
  EXPECT_FALSE(timer.IsStuck(kStart));
  timer.Begin(kStart);
  timer.End();
  EXPECT_FALSE(timer.writing());
  EXPECT_FALSE(timer.IsStuck(kStart + absl::Hours(1)));
}

// A message every 29 seconds, for an hour.
TEST(WriteTimer, ASlowReaderThatTakesMessagesIsNotStuck) {
  WriteTimer timer(absl::Seconds(30));
  for (absl::Time now = kStart; now < kStart + absl::Hours(1);) {
    timer.Begin(now);
    now += absl::Seconds(29);
    EXPECT_FALSE(timer.IsStuck(now));
    timer.End();
  }
}

//   check at 0, nothing written -> 30    write begins at 20    check at 30 -> 50: stuck, not later
TEST(WriteTimer, CheckingAtTheReturnedTimesFindsAStuckWriteAtOnce) {
  WriteTimer timer(absl::Seconds(30));
  const absl::Time check = timer.NextCheck(kStart);
  EXPECT_EQ(check, kStart + absl::Seconds(30));
  timer.Begin(kStart + absl::Seconds(20));
  EXPECT_FALSE(timer.IsStuck(check));
  EXPECT_EQ(timer.NextCheck(check), kStart + absl::Seconds(50));
  EXPECT_TRUE(timer.IsStuck(timer.NextCheck(check)));
}

}  // namespace longshort::server::write_timer_test
