#include "server/handlers/fan_out.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace longshort {
namespace {

TEST(FanOut, EndsWithTheLastPart) {
  const auto cancelled = std::make_shared<CancellationFlag>(false);
  FanOut fan_out(2, cancelled);
  EXPECT_FALSE(fan_out.Finished(absl::OkStatus()));
  EXPECT_TRUE(fan_out.Finished(absl::OkStatus()));
  EXPECT_TRUE(fan_out.status().ok());
  EXPECT_FALSE(*cancelled);
}

TEST(FanOut, TheFirstErrorCancelsTheOthersAndStays) {
  const auto cancelled = std::make_shared<CancellationFlag>(false);
  FanOut fan_out(2, cancelled);
  fan_out.Finished(absl::UnavailableError("first"));
  EXPECT_TRUE(*cancelled);
  EXPECT_TRUE(fan_out.Finished(absl::CancelledError("second")));
  EXPECT_EQ(fan_out.status(), absl::UnavailableError("first"));
}

// Part 2 of 0..3 is refused: 3 is not tried, and only 0 and 1 are waited for.
TEST(SubmitAll, StopsAtARefusal) {
  FanOut fan_out(5, std::make_shared<CancellationFlag>(false));
  std::vector<int64_t> tried;
  const Submission submission = SubmitAll(4, fan_out, [&](const CallPart& part) {
    EXPECT_EQ(part.count, 4);
    tried.push_back(part.index);
    return part.index == 2 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });
  EXPECT_FALSE(submission.taken);
  EXPECT_FALSE(submission.ended);
  EXPECT_EQ(tried, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_FALSE(fan_out.Finished(absl::CancelledError("")));
  EXPECT_TRUE(fan_out.Finished(absl::CancelledError("")));
  EXPECT_EQ(fan_out.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace longshort
