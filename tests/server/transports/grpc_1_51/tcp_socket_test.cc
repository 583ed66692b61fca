#include "server/transports/grpc_1_51/tcp_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace longshort::server::tcp_socket_test {

using ::testing::MatchesRegex;

// Both ends of a connection on loopback.
class TcpSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    ASSERT_EQ(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(listening, 1), 0);
    ASSERT_EQ(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length), 0);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(client_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    server_ = accept(listening, nullptr, nullptr);
    ASSERT_GE(server_, 0);
    close(listening);
  }
  void TearDown() override {
    close(client_);
    if (server_ >= 0) close(server_);
  }

  void SendToServer(int bytes) { ASSERT_EQ(send(client_, std::string(bytes, 'x').data(), bytes, 0), bytes); }
  int ReadByServer(int bytes) { return static_cast<int>(recv(server_, std::string(bytes, ' ').data(), bytes, 0)); }

  int client_ = -1;
  int server_ = -1;
};

TEST_F(TcpSocketTest, ItsBytesAreKnown) {
  const auto identity = IdentityOf(server_);
  ASSERT_TRUE(identity.has_value());
  SendToServer(1000);
  EXPECT_EQ(ReadByServer(400), 400);
  const auto bytes = ReadConnectionBytes(*identity);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->received, 1000);
  EXPECT_EQ(bytes->unread, 600);
  EXPECT_THAT(PeerOf(server_), MatchesRegex("ipv4:127\\.0\\.0\\.1:[0-9]+"));
}

TEST_F(TcpSocketTest, ASeveredConnectionForgetsWhatWasNotRead) {
  SendToServer(1000);
  ASSERT_TRUE(SeverConnection(*IdentityOf(server_)));
  EXPECT_EQ(ReadByServer(1), -1);
  char received = 0;
  EXPECT_EQ(recv(client_, &received, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(TcpSocketTest, WithoutReadingNothingArrivesAndNothingIsLost) {
  const auto identity = IdentityOf(server_);
  ASSERT_TRUE(identity.has_value());
  ASSERT_TRUE(SetReading(*identity, false));
  for (int i = 0; i < 1000; ++i) SendToServer(100);
  ASSERT_EQ(recv(server_, std::string(1, ' ').data(), 1, MSG_DONTWAIT), -1);
  ASSERT_TRUE(SetReading(*identity, true));
  std::string received(100'000, ' ');
  EXPECT_EQ(recv(server_, received.data(), received.size(), MSG_WAITALL), 100'000);
  EXPECT_EQ(received, std::string(100'000, 'x'));
}

// The number of a closed socket is the next one's.
TEST_F(TcpSocketTest, AnotherSocketOfTheSameNumberIsLeftAlone) {
  const auto identity = IdentityOf(server_);
  ASSERT_TRUE(identity.has_value());
  close(server_);
  EXPECT_FALSE(ReadConnectionBytes(*identity).has_value());
  close(client_);
  SetUp();
  const SocketIdentity old{.number = server_, .cookie = identity->cookie};
  EXPECT_FALSE(ReadConnectionBytes(old).has_value());
  EXPECT_FALSE(SeverConnection(old));
  EXPECT_FALSE(SetReading(old, false));
  SendToServer(1);
  EXPECT_EQ(ReadByServer(1), 1);
}

TEST_F(TcpSocketTest, WhatIsNoSocketHasNoIdentity) {
  EXPECT_FALSE(IdentityOf(-1).has_value());
  EXPECT_EQ(PeerOf(-1), "");
}

}  // namespace longshort::server::tcp_socket_test
