#include "server/transports/grpc_1_51/connection_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::server::connection_listener_test {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

// A connection to a port of this machine; no number if there is none.
Descriptor ConnectToIpv6(int port) {
  Descriptor client(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  const bool connected = connect(client.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  return connected ? std::move(client) : Descriptor();
}

Descriptor Connect(int port) {
  Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = connect(client.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  return connected ? std::move(client) : Descriptor();
}

TEST(ConnectionListener, HandsOverConnections) {
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0", "::"}) {
    const auto listener = ConnectionListener::Bind({.host = host, .port = 0});
    ASSERT_TRUE(listener.ok()) << listener.status();
    ASSERT_GT((*listener)->address().port, 0);
    EXPECT_LT(Connect((*listener)->address().port).number(), 0)
        << "clients must not wait for a server that does not serve yet";
    absl::Notification came;
    Descriptor connection;
    ASSERT_TRUE((*listener)
                    ->Start({.accepted =
                                 [&](int socket) {
                                   connection = Descriptor(socket);
                                   came.Notify();
                                 },
                             .refused = [](int64_t) { ADD_FAILURE(); }})
                    .ok());
    const Descriptor client = Connect((*listener)->address().port);
    ASSERT_GE(client.number(), 0) << host;
    ASSERT_TRUE(came.WaitForNotificationWithTimeout(kPatience)) << host;
    ASSERT_EQ(send(connection.number(), "x", 1, 0), 1);
    char received = 0;
    EXPECT_EQ(recv(client.number(), &received, 1, 0), 1);
    EXPECT_EQ(received, 'x');
  }
}

TEST(ConnectionListener, HandsConnectionsOverAtTheirTimeOrClosesThem) {
  auto listener = ConnectionListener::Bind({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener.ok());
  int arrived = 0;
  absl::Time handed_over, begin;
  absl::Notification came;
  ASSERT_TRUE((*listener)
                  ->Start({.admitted = [&](int) -> std::optional<absl::Time> {
                             if (++arrived == 1) return std::nullopt;
                             return begin = MonotonicNow() + absl::Milliseconds(30);
                           },
                           .accepted =
                               [&](int socket) {
                                 close(socket);
                                 handed_over = MonotonicNow();
                                 came.Notify();
                               },
                           .refused = {}})
                  .ok());
  const Descriptor closed = Connect((*listener)->address().port);
  char received = 0;
  EXPECT_EQ(recv(closed.number(), &received, 1, 0), 0);
  const Descriptor waiting = Connect((*listener)->address().port);
  ASSERT_TRUE(came.WaitForNotificationWithTimeout(kPatience));
  EXPECT_GE(handed_over, begin);
}

TEST(ConnectionListener, TellsAClientOfHttpWhereHttpIs) {
  const auto listener = ConnectionListener::Bind({.host = "127.0.0.1", .port = 0}, kDefaultSocketMode, "there:8501");
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_TRUE((*listener)->Start({.accepted = [](int) { ADD_FAILURE() << "HTTP/1"; }, .refused = {}}).ok());
  for (const std::string request : {"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "POST /v1/completions HTTP/1.1\r\n"}) {
    const Descriptor client = Connect((*listener)->address().port);
    ASSERT_EQ(send(client.number(), request.data(), request.size(), 0), std::ssize(request));
    std::string answer;
    std::array<char, 512> part;
    while (true) {
      const ssize_t size = recv(client.number(), part.data(), part.size(), 0);
      if (size <= 0) break;
      answer.append(part.data(), size);
    }
    EXPECT_THAT(answer, HasSubstr("HTTP/1.1 400 "));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\nThis is the gRPC port. HTTP is at there:8501.\n"));
  }
}

TEST(ConnectionListener, HandsOverSilentConnectionsToo) {
  constexpr int kConnections = 200;  // more than may be silent at a time
  absl::BlockingCounter came(kConnections);
  auto listener = ConnectionListener::Bind({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto accepted = [&](int socket) {
    close(socket);
    came.DecrementCount();
  };
  ASSERT_TRUE((*listener)->Start({.accepted = accepted, .refused = {}}).ok());
  std::vector<Descriptor> clients;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(Connect((*listener)->address().port));
    // The first bytes of HTTP/2, and of TLS.
    if (i % 4 == 1) send(clients.back().number(), "PRI * HTTP/2.0\r\n", 16, 0);
    if (i % 4 == 2) send(clients.back().number(), "\x16\x03\x01", 3, 0);
  }
  listener->reset();  // hands over the rest
  came.Wait();
}

// Who names the IPv4 addresses may have a firewall for these only.
TEST(ConnectionListener, AnyIpv4AddressIsNoIpv6Address) {
  for (const std::string host : {"0.0.0.0", "::"}) {
    const auto listener = ConnectionListener::Bind({.host = host, .port = 0});
    ASSERT_TRUE(listener.ok()) << listener.status();
    ASSERT_TRUE((*listener)->Start({.accepted = [](int socket) { close(socket); }, .refused = {}}).ok());
    const bool has_ipv6 = ConnectionListener::Bind({.host = "::1", .port = 0}).ok();
    EXPECT_EQ(ConnectToIpv6((*listener)->address().port).number() >= 0, has_ipv6 && host == "::");
  }
}

TEST(ConnectionListener, TakesNoConnectionOnceItIsGone) {
  auto listener = ConnectionListener::Bind({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener.ok());
  const int port = (*listener)->address().port;
  ASSERT_TRUE((*listener)->Start({.accepted = [](int socket) { close(socket); }, .refused = {}}).ok());
  listener->reset();
  EXPECT_LT(Connect(port).number(), 0);
}

TEST(ConnectionListener, SaysWhyAnAddressCannotBeBound) {
  const auto first = ConnectionListener::Bind({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(first.ok());
  const auto second = ConnectionListener::Bind({.host = "127.0.0.1", .port = (*first)->address().port});
  ASSERT_TRUE((*first)->Start({.accepted = [](int socket) { close(socket); }, .refused = {}}).ok());
  if (second.ok()) {  // the system reports a conflict of two bound sockets only when they listen
    EXPECT_THAT(std::string((*second)->Start({}).message()), HasSubstr("in use"));
  }
  const auto refusal = [](const ListenAddress& address) {
    return std::string(ConnectionListener::Bind(address).status().message());
  };
  const std::string port = std::to_string((*first)->address().port);
  EXPECT_THAT(refusal({.host = "127.0.0.1", .port = (*first)->address().port}),
              AllOf(HasSubstr("--listen=127.0.0.1:" + port), HasSubstr("in use")));
  EXPECT_THAT(refusal({.host = "0.0.0.0", .port = (*first)->address().port}), HasSubstr("in use"));
  EXPECT_THAT(refusal({.host = "192.0.2.1", .port = 0}), HasSubstr("Cannot assign requested address"));
  EXPECT_THAT(refusal({.host = "no such host", .port = 0}), HasSubstr("--listen=no such host:0"));
}

}  // namespace longshort::server::connection_listener_test
