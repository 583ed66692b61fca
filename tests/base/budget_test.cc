#include "base/budget.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace longshort {
namespace {

TEST(TokenBudget, IsTakenAndGivenBack) {
  const auto budget = std::make_shared<TokenBudget>(10);
  {
    const auto first = TokenBudget::Take(budget, 6);
    ASSERT_TRUE(first.ok());
    ASSERT_TRUE(TokenBudget::Take(budget, 4).ok());  // given back at once
    EXPECT_EQ(budget->held(), 6);
  }
  EXPECT_EQ(budget->held(), 0);
}

TEST(TokenBudget, RefusesWhatDoesNotFitAndHoldsNothingForIt) {
  const auto budget = std::make_shared<TokenBudget>(10);
  const auto first = TokenBudget::Take(budget, 6);
  EXPECT_EQ(TokenBudget::Take(budget, 5).status(),
            absl::ResourceExhaustedError(
                "the requests in flight hold 6 prompt tokens and this one has 5; together they may hold 10"));
  EXPECT_EQ(budget->held(), 6);
}

TEST(TokenBudget, AlwaysTakesWhatIsAlone) {
  const auto budget = std::make_shared<TokenBudget>(10);
  const auto alone = TokenBudget::Take(budget, 1000);
  EXPECT_TRUE(alone.ok());
  EXPECT_FALSE(TokenBudget::Take(budget, 1).ok());
}

TEST(TokenBudget, WhatIsRefusedIsInNobodysWay) {
  const auto budget = std::make_shared<TokenBudget>(10);
  const auto first = TokenBudget::Take(budget, 6);
  std::atomic<int64_t> giants = 0;
  std::atomic<bool> over = false;
  std::thread giant([&] {
    for (; !over; ++giants) EXPECT_FALSE(TokenBudget::Take(budget, 1000).ok());
  });
  int64_t refused = 0;
  while (giants < 20'000) refused += TokenBudget::Take(budget, 4).ok() ? 0 : 1;
  over = true;
  giant.join();
  EXPECT_EQ(refused, 0);
}

TEST(TokenBudget, ASharesTokensAreGivenBackOnceHoweverItMoves) {
  const auto budget = std::make_shared<TokenBudget>(10);
  {
    TokenBudget::Share share = *TokenBudget::Take(budget, 6);
    TokenBudget::Share moved = std::move(share);
    EXPECT_EQ(budget->held(), 6);
    share = std::move(moved);
    EXPECT_EQ(budget->held(), 6);
  }
  EXPECT_EQ(budget->held(), 0);
}

TEST(TokenBudget, MayBeAskedForRoomForMoreThanIsTaken) {
  const auto budget = std::make_shared<TokenBudget>(10);
  const auto first = TokenBudget::Take(budget, 2);
  const auto beginning = TokenBudget::Take(budget, 3, 5);
  EXPECT_TRUE(beginning.ok());
  EXPECT_EQ(budget->held(), 5);
  EXPECT_EQ(TokenBudget::Take(budget, 3, 3).status().message(),
            "the requests in flight hold 5 prompt tokens and this one has 6; together they may hold 10");
}

}  // namespace
}  // namespace longshort
