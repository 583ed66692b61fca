#include <map>
#include <string>
#include <vector>

#include "core/schedule/work_order.h"
#include "gtest/gtest.h"

namespace longshort::core::client_order_test {

constexpr auto kAny = [](ClientOrder::Handle) { return true; };

TEST(ClientOrder, ForgetsClientsOnceTheClockHasPassedThem) {
  ClientOrder order;
  ClientOrder::Handle next = 0;
  for (; next < 10; ++next) order.Add(next, "name" + std::to_string(next), absl::InfiniteFuture());
  for (; next < 10'000; ++next) {
    const ClientOrder::Handle first = *order.First(kAny);
    const std::string client = "name" + std::to_string(first);
    order.Take(first, client, absl::InfiniteFuture(), absl::Milliseconds(10));
    order.Complete(client, absl::Milliseconds(10), absl::Milliseconds(10), 10);
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
  order.Complete("a", absl::Seconds(1), absl::Seconds(1), 2);
  order.Add(3, "a", absl::InfinitePast());
  EXPECT_EQ(order.First(kAny), 1);
  order.Take(1, "b", absl::InfiniteFuture(), absl::Seconds(2));
  EXPECT_EQ(order.First(kAny), 3);
}

// They ask for nothing that takes time, or leave before it is done, so the clock stands still.
TEST(ClientOrder, RemembersOnlySoManyClientsThatCostNothing) {
  ClientOrder order;
  const auto come_and_go = [&order](ClientOrder::Handle work, absl::Duration cost) {
    const std::string client = "name" + std::to_string(work);
    order.Add(work, client, absl::InfiniteFuture());
    order.Complete(client, cost, cost, order.Take(work, client, absl::InfiniteFuture(), cost));
  };
  order.Add(0, "busy", absl::InfiniteFuture());
  come_and_go(1, absl::Hours(1));
  for (ClientOrder::Handle work = 2; work < 100'000; ++work) come_and_go(work, absl::ZeroDuration());
  EXPECT_LE(order.clients(), 10'000);
  come_and_go(100'000, absl::Seconds(1));
  order.Add(100'001, "name100000", absl::InfiniteFuture());
  order.Add(100'002, "name1", absl::InfiniteFuture());
  EXPECT_EQ(order.First([](ClientOrder::Handle work) { return work > 0; }), 100'001)
      << "who is furthest ahead of the clock is remembered";
}

// Client 0 waits all the while for its turn, as clients 1 to 10 have theirs; then client 11 comes.
class ClientOrderNewcomerTest : public testing::Test {
 protected:
  static constexpr int kWaits = 0, kNewcomer = 11;

  ClientOrderNewcomerTest() { Add(kWaits); }

  void Add(int client) {
    order_.Add(static_cast<int64_t>(client_of_.size()), std::to_string(client), absl::InfiniteFuture());
    client_of_.push_back(client);
  }
  // Takes the first work of this client.
  void Take(int client, double seconds) {
    const auto work = *order_.First([&](ClientOrder::Handle handle) { return client_of_[handle] == client; });
    charged_[client] = absl::Seconds(seconds);
    shared_by_[client] = order_.Take(work, std::to_string(client), absl::InfiniteFuture(), charged_[client]);
  }
  // It took so much more than it was charged.
  void Complete(int client, double more_seconds) {
    const absl::Duration cost = charged_[client] + absl::Seconds(more_seconds);
    order_.Complete(std::to_string(client), charged_[client], cost, shared_by_[client]);
  }

  // How long client 0 is served before the newcomer is.
  double SecondsBeforeNewcomer() {
    Add(kNewcomer);
    const auto of_both = [&](ClientOrder::Handle handle) {
      return client_of_[handle] == kWaits || client_of_[handle] == kNewcomer;
    };
    double seconds = 0;
    for (; client_of_[*order_.First(of_both)] == kWaits; seconds += 0.01) {
      Add(kWaits);
      Take(kWaits, 0.01);
      Complete(kWaits, 0);
    }
    return seconds;
  }

  ClientOrder order_;
  std::vector<int> client_of_;  // by handle
  std::map<int, absl::Duration> charged_;
  std::map<int, int64_t> shared_by_;
};

// Of 10 s each was charged with, 9 s are given back when ten others, nine and so on wait or run: were they divided by
// those, the clock would stand 9 s before its beginning.
TEST_F(ClientOrderNewcomerTest, DoesNotOvertakeAWaitingClientBecauseOthersEndedSoonerThanPredicted) {
  for (int client = 1; client <= 10; ++client) Add(client);
  for (int client = 1; client <= 10; ++client) Take(client, 10);
  for (int client = 1; client <= 10; ++client) Complete(client, -9);
  EXPECT_NEAR(SecondsBeforeNewcomer(), 10 * 1.0 / 11, 0.02);
}

// The same backwards: each is charged when it is one more than before, and ends while all of them wait again.
TEST_F(ClientOrderNewcomerTest, DoesNotWaitForWhatOthersWereChargedTooMuch) {
  double clock = 0;
  for (int client = 1; client <= 10; ++client) {
    Add(client);
    Take(client, 10);
    clock += 1.0 / (1 + client);
  }
  for (int client = 1; client <= 10; ++client) Add(client);
  for (int client = 1; client <= 10; ++client) Complete(client, -9);
  EXPECT_NEAR(SecondsBeforeNewcomer(), clock, 0.02);
}

// Nothing was known of it, and only one waited when it was taken.
TEST_F(ClientOrderNewcomerTest, WaitsForWhatARequestTookLongerThanPredictedAsManyAsShareIt) {
  Add(1);
  Take(1, 0);
  for (int client = 2; client <= 10; ++client) Add(client);
  Complete(1, 11);
  EXPECT_NEAR(SecondsBeforeNewcomer(), 1, 0.02);
}

// Another runs that is predicted to take minutes, and ends at once.
TEST_F(ClientOrderNewcomerTest, IsNotPlacedByAPrediction) {
  Add(1);
  Take(1, 131);
  Add(kNewcomer);
  Take(kNewcomer, 0.01);
  Complete(kNewcomer, 0);
  Complete(1, -130.8);
  EXPECT_LT(SecondsBeforeNewcomer(), 0.03);
}

TEST(ClientOrder, ClientsOfWhoseWorkNothingIsKnownTakeTurns) {
  ClientOrder order;
  for (ClientOrder::Handle i = 0; i < 10; ++i) order.Add(i, "flood", absl::InfiniteFuture());
  order.Add(10, "other", absl::InfiniteFuture());
  order.Take(0, "flood", absl::InfiniteFuture(), absl::ZeroDuration());
  EXPECT_EQ(order.First(kAny), 10);
}

}  // namespace longshort::core::client_order_test
