#include "server/admission/write_timer.h"

#include <gtest/gtest.h>

namespace longshort::server::write_timer_test {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(WriteTimer, AWriteIsStuckAfterTheTimeout) {
  WriteTimer watch(absl::Seconds(30));
  watch.Begin(kStart);
  EXPECT_TRUE(watch.writing());
  EXPECT_FALSE(watch.IsStuck(kStart + absl::Milliseconds(29999)));
  EXPECT_TRUE(watch.IsStuck(kStart + absl::Seconds(30)));
}

TEST(WriteTimer, WithoutAWriteNothingIsStuck) {
  WriteTimer watch(absl::Seconds(30));
  EXPECT_FALSE(watch.IsStuck(kStart));
  watch.Begin(kStart);
  watch.End();
  EXPECT_FALSE(watch.writing());
  EXPECT_FALSE(watch.IsStuck(kStart + absl::Hours(1)));
}

// A message every 29 seconds, for an hour.
TEST(WriteTimer, ASlowReaderThatTakesMessagesIsNotStuck) {
  WriteTimer watch(absl::Seconds(30));
  for (absl::Time now = kStart; now < kStart + absl::Hours(1);) {
    watch.Begin(now);
    now += absl::Seconds(29);
    EXPECT_FALSE(watch.IsStuck(now));
    watch.End();
  }
}

//   look at 0, nothing written -> 30    write begins at 20    look at 30 -> 50: stuck, not later
TEST(WriteTimer, CheckingAtTheReturnedTimesFindsAStuckWriteAtOnce) {
  WriteTimer watch(absl::Seconds(30));
  const absl::Time look = watch.NextCheck(kStart);
  EXPECT_EQ(look, kStart + absl::Seconds(30));
  watch.Begin(kStart + absl::Seconds(20));
  EXPECT_FALSE(watch.IsStuck(look));
  EXPECT_EQ(watch.NextCheck(look), kStart + absl::Seconds(50));
  EXPECT_TRUE(watch.IsStuck(watch.NextCheck(look)));
}

}  // namespace longshort::server::write_timer_test
