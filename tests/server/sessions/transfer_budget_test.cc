#include "server/sessions/transfer_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/refusal.h"

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

TEST(TransferBudget, OneSessionOfAClientMayBeLarger) {
  TransferBudget budget(100);
  const auto large = budget.Take("alice", 80);
  EXPECT_TRUE(large.ok());
  EXPECT_FALSE(budget.Take("bob", 30).ok());
  EXPECT_TRUE(budget.Take("bob", 20).ok());
}

TEST(TransferBudget, AShareGrowsAsFarAsThereIsRoom) {
  TransferBudget budget(100);
  auto alice = budget.Take("alice", 10, 60);
  auto bob = budget.Take("bob", 10, 60);
  ASSERT_TRUE(alice.ok() && bob.ok()) << "both are incomplete";
  EXPECT_TRUE(alice->Grow(70).ok()) << "over half, but the only session of its client";
  EXPECT_EQ(bob->Grow(70).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(core::GetRefusal(bob->Grow(70)).has_value());
  EXPECT_EQ(budget.held(), 80);
  EXPECT_TRUE(bob->Grow(30).ok());
  *alice = TransferBudget::Share();
  EXPECT_TRUE(bob->Grow(1000).ok()) << "the only session in total";
}

}  // namespace longshort::server::transfer_budget_test
