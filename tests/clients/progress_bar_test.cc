#include <atomic>
#include <semaphore>
#include <sstream>

#include "absl/time/time.h"
#include "base/clock.h"
#include "clients/cpp/terminal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::client::progress_bar_test {

using testing::EndsWith;
using testing::HasSubstr;

TEST(ProgressText, ShowsTheShareTheRateAndTheRemainingTime) {
  // 512 in 10 s are 51.2 a second; the other 768 take 15 s.
  EXPECT_EQ(ProgressText(512, 1280, "images", absl::Seconds(10)),
            "[########------------]  512/1280 images  51.2/s  15 s left");
  EXPECT_EQ(ProgressText(0, 1280, "images", absl::Seconds(10)), "[--------------------]  0/1280 images  10 s");
  EXPECT_EQ(ProgressText(8, 8, "images", absl::Seconds(4)), "[####################]  8/8 images  2.0/s  0 s left");
}

TEST(ProgressText, LongerTimesHaveMinutesAndHours) {
  EXPECT_THAT(ProgressText(10, 310, "images", absl::Seconds(10)), EndsWith("  5 min 00 s left"));
  EXPECT_THAT(ProgressText(1, 7501, "images", absl::Seconds(1)), EndsWith("  2 h 05 min left"));
}

TEST(ProgressText, WithoutATotalThereIsACountAndARate) {
  EXPECT_EQ(ProgressText(30, 0, "documents", absl::Seconds(2)), "30 documents  15.0/s");
}

class ProgressBarTest : public testing::Test {
 protected:
  std::istringstream input_;
  std::ostringstream output_;
  std::ostringstream error_;
};

// A file may grow while it is read.
TEST(ProgressText, ATotalThatWasPassedIsNoTotal) {
  EXPECT_EQ(ProgressText(216, 215, "documents", absl::Seconds(10)), "216 documents  21.6/s");
}

TEST_F(ProgressBarTest, NothingRemainsOfTheLine) {
  Terminal terminal{.input = input_, .output = output_, .error = error_, .error_is_terminal = true};
  {
    ProgressBar bar(terminal, {.unit = "images", .total = 2});
    EXPECT_THAT(error_.str(), HasSubstr("0/2 images"));
    bar.Hide();
    EXPECT_THAT(error_.str(), EndsWith("\r\033[K"));
    bar.Advance();
    EXPECT_THAT(error_.str(), HasSubstr("1/2 images"));
  }
  EXPECT_THAT(error_.str(), EndsWith("\r\033[K"));
}

TEST_F(ProgressBarTest, NothingIsDrawnForOneItemOrWithoutATerminal) {
  Terminal terminal{.input = input_, .output = output_, .error = error_, .error_is_terminal = true};
  ProgressBar(terminal, {.unit = "images", .total = 1}).Advance();
  terminal.error_is_terminal = false;
  ProgressBar(terminal, {.unit = "images", .total = 2}).Advance();
  EXPECT_EQ(error_.str(), "");
}

// Each look at it is 1.2 s after the one before.
class SteppingClock final : public Clock {
 public:
  absl::Time Now() const override {
    looks_.release();
    return absl::UnixEpoch() + absl::Milliseconds(1200) * looked_++;
  }
  void WaitForLook() { looks_.acquire(); }

 private:
  mutable std::atomic<int> looked_ = 0;
  mutable std::counting_semaphore<> looks_{0};
};

// A long document: nothing is done for a while, and the line goes on.
TEST_F(ProgressBarTest, TheLineIsRedrawnWhileNothingIsDone) {
  Terminal terminal{.input = input_, .output = output_, .error = error_, .error_is_terminal = true};
  SteppingClock clock;
  ProgressBar bar(terminal, {.unit = "documents", .total = 1}, clock);
  clock.WaitForLook();  // the beginning
  clock.WaitForLook();  // by the thread that redraws
  bar.Hide();
  EXPECT_THAT(error_.str(), HasSubstr("0/1 documents  1 s"));
  error_.str("");
  clock.WaitForLook();
  bar.Hide();  // after that look
  EXPECT_EQ(error_.str(), "");
}

TEST_F(ProgressBarTest, AQuietOneIsNotDrawn) {
  Terminal terminal{.input = input_, .output = output_, .error = error_, .error_is_terminal = true};
  ProgressBar(terminal, {.unit = "documents", .total = 2, .quiet = true}).Advance();
  EXPECT_EQ(error_.str(), "");
}

}  // namespace longshort::client::progress_bar_test
