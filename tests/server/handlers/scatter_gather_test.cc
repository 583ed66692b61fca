#include "server/handlers/scatter_gather.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace longshort::server::scatter_gather_test {

class ScatterGatherTest : public testing::Test {
 protected:
  // Gathers the numbers of the successful parts.
  using Parts = ScatterGather<std::vector<int64_t>>;

  void PartEnded(int64_t index, const absl::Status& status = absl::OkStatus()) {
    parts_.PartEnded(status, [&](std::vector<int64_t>& numbers) {
      if (status.ok()) numbers.push_back(index);
    });
  }
  static absl::Status Accept(const core::PositionInCall&) { return absl::OkStatus(); }

  const std::shared_ptr<core::CancellationFlag> cancelled_ = std::make_shared<core::CancellationFlag>(false);
  std::optional<absl::Status> completed_;
  std::optional<absl::StatusOr<std::vector<int64_t>>> done_;
  Parts parts_{cancelled_,
               {},
               [this](const absl::Status& status, std::vector<int64_t>& numbers) {
                 EXPECT_FALSE(completed_.has_value() || done_.has_value());
                 completed_ = status;
                 numbers.push_back(-1);
               },
               [this](absl::StatusOr<std::vector<int64_t>> numbers) { done_ = std::move(numbers); }};
};

TEST_F(ScatterGatherTest, EndsWithTheLastPartAndTheResultsOfAll) {
  EXPECT_TRUE(parts_.SubmitParts(2, Accept));
  PartEnded(1);
  EXPECT_FALSE(done_.has_value());
  PartEnded(0);
  ASSERT_TRUE(done_.has_value());
  EXPECT_EQ(**done_, (std::vector<int64_t>{1, 0, -1}));
  EXPECT_EQ(completed_, absl::OkStatus());
  EXPECT_FALSE(*cancelled_);
}

TEST_F(ScatterGatherTest, PartsMayEndWhileTheyAreSubmitted) {
  EXPECT_TRUE(parts_.SubmitParts(2, [this](const core::PositionInCall& position) {
    EXPECT_EQ(position.count, 2);
    EXPECT_EQ(position.share, 0.5);
    PartEnded(position.index);
    EXPECT_FALSE(done_.has_value());
    return absl::OkStatus();
  }));
  ASSERT_TRUE(done_.has_value());
  EXPECT_EQ(**done_, (std::vector<int64_t>{0, 1, -1}));
}

TEST_F(ScatterGatherTest, ACallWithoutPartsEndsAtOnce) {
  EXPECT_TRUE(parts_.SubmitParts(0, Accept));
  EXPECT_TRUE(done_.has_value());
}

TEST_F(ScatterGatherTest, TheFirstErrorCancelsTheOthersAndIsTheCalls) {
  parts_.SubmitParts(2, Accept);
  PartEnded(0, absl::UnavailableError("first"));
  EXPECT_TRUE(*cancelled_);
  EXPECT_FALSE(done_.has_value());
  PartEnded(1, absl::CancelledError("second"));
  ASSERT_TRUE(done_.has_value());
  EXPECT_EQ(done_->status(), absl::UnavailableError("first"));
  EXPECT_EQ(completed_, absl::UnavailableError("first"));
}

// Part 2 of 0..3 is refused: part 3 is not submitted, and the call ends after parts 0 and 1.
TEST_F(ScatterGatherTest, StopsAtARefusal) {
  std::vector<int64_t> tried;
  EXPECT_FALSE(parts_.SubmitParts(4, [&](const core::PositionInCall& position) {
    EXPECT_EQ(position.count, 4);
    tried.push_back(position.index);
    return position.index == 2 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  }));
  EXPECT_EQ(tried, (std::vector<int64_t>{0, 1, 2}));
  PartEnded(0, absl::CancelledError(""));
  EXPECT_FALSE(done_.has_value());
  PartEnded(1, absl::CancelledError(""));
  EXPECT_EQ(done_->status().code(), absl::StatusCode::kResourceExhausted);
}

// Five parts, of which two run at a time.
class InTurnTest : public testing::Test {
 protected:
  using Parts = ScatterGather<std::vector<int64_t>>;

  void Begin() {
    parts_->SubmitInTurn(
        5, 2,
        [this](const core::PositionInCall& position) {
          tried_.push_back(position.index);
          return position.index == refused_ ? absl::ResourceExhaustedError("full") : absl::OkStatus();
        },
        [](absl::AnyInvocable<void()> task) { task(); });
  }
  void PartEnded(int64_t index, const absl::Status& status = absl::OkStatus()) {
    parts_->PartEnded(status, [&](std::vector<int64_t>& numbers) { numbers.push_back(index); });
  }

  std::vector<int64_t> tried_;
  int64_t refused_ = -1;
  std::optional<absl::StatusOr<std::vector<int64_t>>> done_;
  const std::shared_ptr<Parts> parts_ = std::make_shared<Parts>(
      std::make_shared<core::CancellationFlag>(false), std::vector<int64_t>(),
      [](const absl::Status&, std::vector<int64_t>&) {},
      [this](absl::StatusOr<std::vector<int64_t>> numbers) { done_ = std::move(numbers); });
};

TEST_F(InTurnTest, APartFollowsWhenOneHasEnded) {
  Begin();
  EXPECT_EQ(tried_, (std::vector<int64_t>{0, 1}));
  for (const int64_t index : {1, 0, 2, 3}) PartEnded(index);
  EXPECT_EQ(tried_, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_FALSE(done_.has_value());
  PartEnded(4);
  EXPECT_EQ(**done_, (std::vector<int64_t>{1, 0, 2, 3, 4}));
}

// An engine may end a part at once, on another thread, while the call's data are still used to submit it.
TEST_F(InTurnTest, TheCallDoesNotEndWhileAPartIsSubmitted) {
  parts_->SubmitInTurn(
      2, 1,
      [this](const core::PositionInCall& position) {
        if (position.index == 1) PartEnded(1);
        EXPECT_FALSE(done_.has_value());
        return absl::OkStatus();
      },
      [](absl::AnyInvocable<void()> task) { task(); });
  PartEnded(0);
  EXPECT_EQ(**done_, (std::vector<int64_t>{0, 1}));
}

TEST_F(InTurnTest, ARefusedPartWaitsForTheNextEnd) {
  Begin();
  refused_ = 2;
  PartEnded(0);
  refused_ = -1;
  PartEnded(1);
  EXPECT_EQ(tried_, (std::vector<int64_t>{0, 1, 2, 2}));
  for (const int64_t index : {2, 3, 4}) PartEnded(index);
  EXPECT_TRUE(done_->ok());
}

TEST_F(InTurnTest, ARefusalEndsTheCallIfNoPartRuns) {
  Begin();
  refused_ = 2;
  PartEnded(0);
  PartEnded(1);
  EXPECT_EQ(tried_, (std::vector<int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(done_->status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(InTurnTest, NothingFollowsAnError) {
  Begin();
  PartEnded(0, absl::InternalError("broken"));
  EXPECT_EQ(tried_.size(), 2);
  PartEnded(1);
  EXPECT_EQ(tried_.size(), 2);
  EXPECT_EQ(done_->status().code(), absl::StatusCode::kInternal);
}

}  // namespace longshort::server::scatter_gather_test
