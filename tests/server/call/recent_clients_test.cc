#include "server/call/recent_clients.h"

#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"

namespace longshort::server {
namespace {

TEST(RecentClients, AreSeveralForTwoSecondsAfterAnotherOneCalled) {
  RecentClients clients;
  EXPECT_FALSE(clients.several());
  for (int call = 0; call < 3; ++call) clients.Note("one");
  EXPECT_FALSE(clients.several());

  clients.Note("other");
  EXPECT_TRUE(clients.several());
  clients.Note("one");
  clients.Note("one");
  EXPECT_TRUE(clients.several(MonotonicNow() + absl::Milliseconds(1900)));
  EXPECT_FALSE(clients.several(MonotonicNow() + absl::Milliseconds(2001)));
}

}  // namespace
}  // namespace longshort::server
