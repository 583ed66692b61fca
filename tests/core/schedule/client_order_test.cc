#include "core/schedule/client_order.h"

#include <string>

#include "gtest/gtest.h"

namespace longshort {
namespace {

constexpr auto kAny = [](ClientOrder::Handle) { return true; };

TEST(ClientOrder, ForgetsClientsOnceTheClockHasPassedThem) {
  ClientOrder order;
  ClientOrder::Handle next = 0;
  for (; next < 10; ++next) order.Add(next, "name" + std::to_string(next), absl::InfiniteFuture());
  for (; next < 10'000; ++next) {
    const ClientOrder::Handle first = *order.First(kAny);
    const std::string client = "name" + std::to_string(first);
    order.Take(first, client, absl::InfiniteFuture(), absl::Milliseconds(10));
    order.Settle(client, absl::ZeroDuration());
    order.Add(next, "name" + std::to_string(next), absl::InfiniteFuture());
    // Ten wait. The clock goes on by 1 ms each time, and forgets a client 100 ms after the 10 ms that it took.
    ASSERT_LE(order.clients(), 10 + 10 + 100 + 1);
  }
}

TEST(ClientOrder, WhoIsAheadOfTheClockStaysAheadWhenItComesBack) {
  ClientOrder order;
  order.Add(0, "a", absl::InfiniteFuture());
  order.Add(1, "b", absl::InfiniteFuture());
  order.Add(2, "b", absl::InfiniteFuture());
  order.Take(0, "a", absl::InfiniteFuture(), absl::Seconds(1));
  order.Settle("a", absl::ZeroDuration());
  order.Add(3, "a", absl::InfinitePast());
  EXPECT_EQ(order.First(kAny), 1);
  order.Take(1, "b", absl::InfiniteFuture(), absl::Seconds(2));
  EXPECT_EQ(order.First(kAny), 3);
}

TEST(ClientOrder, ClientsOfWhoseWorkNothingIsKnownTakeTurns) {
  ClientOrder order;
  for (ClientOrder::Handle i = 0; i < 10; ++i) order.Add(i, "flood", absl::InfiniteFuture());
  order.Add(10, "other", absl::InfiniteFuture());
  order.Take(0, "flood", absl::InfiniteFuture(), absl::ZeroDuration());
  EXPECT_EQ(order.First(kAny), 10);
}

}  // namespace
}  // namespace longshort
