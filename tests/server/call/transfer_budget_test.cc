#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/refusal.h"
#include "server/call/call_memory.h"

namespace longshort::server::transfer_budget_test {

using ::testing::HasSubstr;

TEST(TransferBudget, AClientHasHalfOfIt) {
  TransferBudget budget(100);
  auto first = budget.Take("alice", 40);
  ASSERT_TRUE(first.ok());
  const auto second = budget.Take("alice", 20);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("sessions of this client"));
  EXPECT_TRUE(core::GetRefusal(second.status()).has_value()) << "clients may retry";
  EXPECT_TRUE(budget.Take("bob", 50).ok());
  EXPECT_FALSE(budget.Take("bob", 70).ok()) << "60 are left in total";
  *first = TransferBudget::Share();
  EXPECT_EQ(budget.held(), 0);
  EXPECT_TRUE(budget.Take("alice", 50).ok());
}

TEST(TransferBudget, NoSessionMayBeLarger) {
  TransferBudget budget(100);
  EXPECT_FALSE(budget.Take("alice", 51).ok());
  EXPECT_TRUE(budget.Take("alice", 50).ok());
}

TEST(TransferBudget, AShareGrowsAsFarAsThereIsRoom) {
  TransferBudget budget(100);
  auto alice = budget.Take("alice", 10, 30), bob = budget.Take("bob", 40), carol = budget.Take("carol", 10, 30);
  ASSERT_TRUE(alice.ok() && bob.ok() && carol.ok());
  EXPECT_TRUE(alice->Grow(50).ok());
  EXPECT_EQ(carol->Grow(20).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(core::GetRefusal(carol->Grow(20)).has_value());
  EXPECT_EQ(budget.held(), 100);
  *alice = TransferBudget::Share();
  EXPECT_TRUE(carol->Grow(50).ok());
  EXPECT_EQ(carol->Grow(51).code(), absl::StatusCode::kResourceExhausted) << "half of the budget";
}

}  // namespace longshort::server::transfer_budget_test
