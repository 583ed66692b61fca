#include "base/budget.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace longshort::budget_test {

std::shared_ptr<Budget> BudgetOf(int64_t capacity) {
  return std::make_shared<Budget>(capacity,
                                  Budget::Names{.holders = "the requests in flight", .unit = "prompt tokens"});
}

TEST(Budget, IsTakenAndGivenBack) {
  const auto budget = BudgetOf(10);
  {
    const auto first = Budget::Take(budget, 6);
    ASSERT_TRUE(first.ok());
    ASSERT_TRUE(Budget::Take(budget, 4).ok());  // given back at once
    EXPECT_EQ(budget->held(), 6);
  }
  EXPECT_EQ(budget->held(), 0);
}

TEST(Budget, RefusesWhatDoesNotFitAndHoldsNothingForIt) {
  const auto budget = BudgetOf(10);
  const auto first = Budget::Take(budget, 6);
  EXPECT_EQ(Budget::Take(budget, 5).status(),
            absl::ResourceExhaustedError(
                "the requests in flight hold 6 prompt tokens and this one has 5; together they may hold 10"));
  EXPECT_EQ(budget->held(), 6);
}

TEST(Budget, RefusesByItsSizeWhatIsAloneAndLargerThanTheBudget) {
  const auto budget = BudgetOf(10);
  EXPECT_EQ(Budget::Take(budget, 11).status().message(),
            "the requests in flight hold 0 prompt tokens and this one has 11; together they may hold 10");
  EXPECT_EQ(budget->held(), 0);
}

TEST(Budget, IsTakenFromTheBudgetsAboveToo) {
  const auto all = BudgetOf(10);
  const auto first = std::make_shared<Budget>(8, Budget::Names{"answers", "bytes"}, all);
  const auto second = std::make_shared<Budget>(8, Budget::Names{"messages", "bytes"}, all);
  Budget::Share share = *Budget::Take(first, 6);
  EXPECT_EQ(all->held(), 6);
  EXPECT_EQ(Budget::Take(second, 5).status().message(),
            "the requests in flight hold 6 prompt tokens and this one has 5; together they may hold 10");
  EXPECT_EQ(second->held(), 0);
  EXPECT_TRUE(Budget::Take(second, 4).ok());
  share.SetAmount(9);
  EXPECT_EQ(first->held(), 9);
  EXPECT_EQ(all->held(), 9);
  share = {};
  EXPECT_EQ(all->held(), 0);
}

TEST(Budget, OfTokensTakesTheirBytesFromTheBudgetAbove) {
  const auto bytes = BudgetOf(100);
  const auto tokens = std::make_shared<Budget>(50, Budget::Names{"requests", "tokens"}, bytes, 4);
  Budget::Share share = *Budget::Take(tokens, 20);
  EXPECT_EQ(tokens->held(), 20);
  EXPECT_EQ(bytes->held(), 80);
  EXPECT_FALSE(Budget::Take(tokens, 6).ok());
  EXPECT_FALSE(Budget::Take(tokens, 2, 4).ok());
  EXPECT_EQ(bytes->held(), 80);
  EXPECT_TRUE(share.Grow(25).ok());
  share.Add(5);
  EXPECT_EQ(bytes->held(), 120);
  share = {};
  EXPECT_EQ(bytes->held(), 0);
}

TEST(Budget, WhatIsRefusedIsInNobodysWay) {
  const auto budget = BudgetOf(10);
  const auto first = Budget::Take(budget, 6);
  std::atomic<int64_t> giants = 0;
  std::atomic<bool> over = false;
  std::thread giant([&] {
    for (; !over; ++giants) EXPECT_FALSE(Budget::Take(budget, 1000).ok());
  });
  int64_t refused = 0;
  while (giants < 20'000) refused += Budget::Take(budget, 4).ok() ? 0 : 1;
  over = true;
  giant.join();
  EXPECT_EQ(refused, 0);
}

TEST(Budget, WhatAShareHoldsIsGivenBackOnceHoweverItMoves) {
  const auto budget = BudgetOf(10);
  {
    Budget::Share share = *Budget::Take(budget, 6);
    Budget::Share moved = std::move(share);
    EXPECT_EQ(budget->held(), 6);
    share = std::move(moved);
    EXPECT_EQ(budget->held(), 6);
  }
  EXPECT_EQ(budget->held(), 0);
}

TEST(Budget, MayBeAskedForRoomForMoreThanIsTaken) {
  const auto budget = BudgetOf(10);
  const auto first = Budget::Take(budget, 2);
  const auto beginning = Budget::Take(budget, 3, 5);
  EXPECT_TRUE(beginning.ok());
  EXPECT_EQ(budget->held(), 5);
  EXPECT_EQ(Budget::Take(budget, 3, 3).status().message(),
            "the requests in flight hold 5 prompt tokens and this one has 6; together they may hold 10");
}

TEST(ClientBudgets, ClientsThatTakeAllTheyCanLeaveRoomForOneMore) {
  ClientBudgets clients(std::make_shared<Budget>(1 << 20, Budget::Names{"all", "bytes"}), 1 << 19, {"one", "bytes"},
                        /*leaves_room=*/true);
  std::vector<Budget::Share> held;
  for (int client = 0; client < 6; ++client) {
    const std::shared_ptr<Budget> budget = clients.Of(absl::StrCat(client));
    for (auto share = Budget::Take(budget, 1 << 10); share.ok(); share = Budget::Take(budget, 1 << 10)) {
      held.push_back(*std::move(share));
    }
    EXPECT_NEAR(budget->held(), (1 << 19) >> client, 1 << 10);
  }
  EXPECT_TRUE(Budget::Take(clients.Of("small"), 1 << 12).ok());
}

TEST(Budget, AShareGrowsAsFarAsThereIsRoom) {
  const auto budget = BudgetOf(10);
  Budget::Share share = *Budget::Take(budget, 2);
  Budget::Share other = *Budget::Take(budget, 3);
  EXPECT_TRUE(share.Grow(7).ok());
  EXPECT_EQ(budget->held(), 10);
  EXPECT_EQ(share.Grow(8).message(),
            "the requests in flight hold 3 prompt tokens and this one has 8; together they may hold 10");
  EXPECT_EQ(budget->held(), 10);
  other = {};
  EXPECT_FALSE(share.Grow(11).ok());
  EXPECT_TRUE(share.Grow(10).ok());
  EXPECT_TRUE(share.Grow(1).ok());
  EXPECT_EQ(budget->held(), 1);
}

TEST(Budget, AShareMayTurnOutLargerOrSmaller) {
  const auto budget = BudgetOf(10);
  Budget::Share share = *Budget::Take(budget, 6);
  share.SetAmount(2);
  EXPECT_EQ(budget->held(), 2);
  share.SetAmount(12);
  EXPECT_EQ(budget->held(), 12);
  share = {};
  EXPECT_EQ(budget->held(), 0);
  share.SetAmount(5);  // of nothing
  EXPECT_EQ(budget->held(), 0);
}

}  // namespace longshort::budget_test
