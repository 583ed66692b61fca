#include "server/transports/grpc_1_51/connection_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "server/options/listening_sockets.h"

namespace longshort::server::connection_guard_test {

constexpr absl::Duration kPatience = absl::Seconds(20);

// A connection on loopback, whose server does not read.
struct Pair {
  Descriptor client;
  Descriptor server;

  Pair() {
    const auto listening = BindSockets({.option = "listen", .address = {.host = "127.0.0.1", .port = 0}});
    EXPECT_TRUE(listening.ok());
    EXPECT_EQ(listen(listening->sockets[0].number(), 1), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(listening->port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client = Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    server = Descriptor(accept(listening->sockets[0].number(), nullptr, nullptr));
    EXPECT_GE(server.number(), 0);
  }
};

// Sends so many bytes, and reads them at the other end, as gRPC does.
void SendAndRead(const Pair& pair, int64_t count) {
  const std::string bytes(count, 'x');
  ASSERT_EQ(send(pair.client.number(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  std::string read(count, '\0');
  ASSERT_EQ(recv(pair.server.number(), read.data(), read.size(), MSG_WAITALL), static_cast<ssize_t>(read.size()));
}

TEST(ConnectionGuard, ClosesOnlyConnectionsThatDoNotReadAnswers) {
  std::atomic<int64_t> open = -1;
  absl::Notification reported;
  std::vector<ConnectionGuard::Ended> ended;
  ConnectionGuard guard({.silent_bytes = 70'000, .messages_bytes = 0},
                        {.open = [&](int64_t connections) { open = connections; },
                         .ended =
                             [&](const std::vector<ConnectionGuard::Ended>& connections) {
                               ended = connections;
                               reported.Notify();
                             }});
  ASSERT_TRUE(guard.Start().ok());
  Pair quiet, greedy, leaving;
  const std::optional<absl::Time> begin = guard.Admit(quiet.server.number());
  EXPECT_LE(begin, MonotonicNow());
  guard.Watch(quiet.server.number());
  guard.Watch(greedy.server.number());
  guard.Watch(leaving.server.number());
  while (open != 3) std::this_thread::yield();
  { const Descriptor gone = std::move(leaving.server); }
  while (open != 2) std::this_thread::yield();

  SendAndRead(greedy, 80'000);
  ASSERT_TRUE(reported.WaitForNotificationWithTimeout(kPatience));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].why, AbuseKind::kBytes);
  EXPECT_EQ(ended[0].received_bytes, 80'000);
  EXPECT_EQ(ended[0].peer.substr(0, 15), "ipv4:127.0.0.1:");
  char received = 0;
  EXPECT_EQ(recv(greedy.client.number(), &received, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_GT(guard.Admit(quiet.server.number()), MonotonicNow()) << "a new connection of this address waits";

  while (open != 1) std::this_thread::yield();
  EXPECT_EQ(send(quiet.client.number(), "x", 1, 0), 1);
  EXPECT_EQ(recv(quiet.server.number(), &received, 1, 0), 1);
}

TEST(ConnectionGuard, ClosesTheConnectionWithTheMostIdleBytesIfAllHaveTooMany) {
  absl::Notification reported;
  std::vector<ConnectionGuard::Ended> ended;
  ConnectionGuard guard({.all_idle_bytes = 250'000}, {.open = [](int64_t /*connections*/) {},
                                                      .ended =
                                                          [&](const std::vector<ConnectionGuard::Ended>& connections) {
                                                            ended = connections;
                                                            reported.Notify();
                                                          }});
  ASSERT_TRUE(guard.Start().ok());
  const Pair small, large, medium;
  const std::string bytes(110'000, 'x');
  for (const auto& [pair, count] : {std::pair(&small, 70'000), {&medium, 90'000}, {&large, 110'000}}) {
    guard.Watch(pair->server.number());
    ASSERT_EQ(send(pair->client.number(), bytes.data(), count, 0), count);
  }
  ASSERT_TRUE(reported.WaitForNotificationWithTimeout(kPatience));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].why, AbuseKind::kBytes);
  EXPECT_EQ(ended[0].received_bytes, 110'000);
}

// Whether the system reports a byte of the client to the server's end at once.
bool IsReported(const Pair& pair, int milliseconds) {
  EXPECT_EQ(send(pair.client.number(), "x", 1, 0), 1);
  pollfd waits{.fd = pair.server.number(), .events = POLLIN, .revents = 0};
  return poll(&waits, 1, milliseconds) == 1;
}

TEST(ConnectionGuard, ReadsConnectionsWithManyRefusedCallsOneAfterTheOther) {
  std::map<std::string, std::atomic<int64_t>> refused;
  const Pair one, other, none;
  std::map<const Pair*, std::string> peers;
  for (const Pair* pair : {&one, &other, &none}) {
    peers[pair] = PeerOf(pair->server.number());
    refused[peers[pair]] = 0;
  }
  std::atomic<int64_t> total = 0, taken = 0;
  ConnectionGuard guard({.refused_calls = 100}, {.refused = [&] { return total.load(); },
                                                 .take_refused_of =
                                                     [&](const std::string& peer) {
                                                       const int64_t count = refused.at(peer).exchange(0);
                                                       taken += count;
                                                       return count;
                                                     },
                                                 .open = [](int64_t /*connections*/) {},
                                                 .ended = [](const std::vector<ConnectionGuard::Ended>& /*ended*/) {}});
  for (const auto& [pair, peer] : peers) guard.Watch(pair->server.number());
  refused[peers[&one]] = 150;
  refused[peers[&other]] = 150;
  total = 300;
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(guard.Start().ok());
  while (taken < 300) std::this_thread::yield();
  EXPECT_TRUE(IsReported(none, -1));
  EXPECT_TRUE(IsReported(one, -1));
  EXPECT_TRUE(IsReported(other, -1));
  EXPECT_GE(absl::Now() - begin, absl::Seconds(3)) << "1.5 s each, one after the other";
}

// What gRPC has not read may begin calls: 13 bytes each. The limit is so low that the calls which gRPC knows, none, are
// too many already.
TEST(ConnectionGuard, UnreadBytesCountAsCallsThatNoServiceHasBegun) {
  absl::Notification reported;
  std::vector<ConnectionGuard::Ended> ended;
  ConnectionGuard guard({.calls_not_begun = -1}, {.begun = [] { return int64_t{0}; },
                                                  .begun_by = [](const std::string& /*peer*/) { return int64_t{0}; },
                                                  .open = [](int64_t /*connections*/) {},
                                                  .ended =
                                                      [&](const std::vector<ConnectionGuard::Ended>& connections) {
                                                        ended = connections;
                                                        reported.Notify();
                                                      }});
  const Pair reading, waiting;
  SendAndRead(reading, 2600);
  ASSERT_EQ(send(waiting.client.number(), std::string(1300, 'x').data(), 1300, 0), 1300);
  guard.Watch(reading.server.number());
  guard.Watch(waiting.server.number());
  ASSERT_TRUE(guard.Start().ok());
  ASSERT_TRUE(reported.WaitForNotificationWithTimeout(kPatience));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].why, AbuseKind::kCalls);
  EXPECT_EQ(ended[0].received_bytes, 1300);
  EXPECT_EQ(ended[0].open_calls, 100);
}

// Ending a connection takes a descriptor for some microseconds.
TEST(ConnectionGuard, WithoutADescriptorLeftItTriesAgain) {
  std::atomic<int64_t> open = -1;
  std::atomic<int64_t> looks = 0;
  absl::Notification ended;
  ConnectionGuard guard({.silent_bytes = 1000, .messages_bytes = 0},
                        {.open = [&](int64_t connections) { open = connections, ++looks; },
                         .ended = [&](const std::vector<ConnectionGuard::Ended>& /*connections*/) { ended.Notify(); }});
  ASSERT_TRUE(guard.Start().ok());
  const Pair greedy;
  guard.Watch(greedy.server.number());
  while (open != 1) std::this_thread::yield();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  SendAndRead(greedy, 80'000);
  const absl::Time end = absl::Now() + kPatience;
  // At least one poll a second.
  for (const int64_t seen = looks; looks < seen + 6 && absl::Now() < end;) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(open, 1) << "it is watched still";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(kPatience));
}

}  // namespace longshort::server::connection_guard_test
