#include "server/transports/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/base/temporary_directory.h"
#include "tests/server/transports/http/http_server_fixture.h"

namespace longshort::server::http_server_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
  Serve();
  const RawClient client(port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(kGet));
    EXPECT_EQ(ReceiveUndated(client, kAnswer.size()), kAnswer);
  }
  ASSERT_TRUE(client.Send(std::string(kGet) + kGet + "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(ReceiveUndated(client, 2 * kAnswer.size()), kAnswer + kAnswer) << "those that come together, too";
  EXPECT_THAT(client.Receive(10'000), HasSubstr("Connection: close"));
}

// More than are accepted in one turn.
TEST_F(HttpServerTest, ConnectionsThatComeTogetherAreAllServed) {
  Serve({.connections = 400});
  const RawClient blocking(port());
  ASSERT_TRUE(blocking.Send("GET /block HTTP/1.1\r\nHost: x\r\n\r\n"));
  AwaitWaiting(1);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<RawClient>(port()));
    ASSERT_TRUE(clients.back()->Send(kGet));
  }
  unblocked_.Notify();
  for (const auto& client : clients) EXPECT_EQ(ReceiveUndated(*client, kAnswer.size()), kAnswer);
}

TEST_F(HttpServerTest, ClientsTakeTurnsHoweverManyRequestsOneHas) {
  Serve();
  std::vector<std::unique_ptr<RawClient>> connections;
  for (int i = 0; i < 50; ++i) connections.push_back(std::make_unique<RawClient>(port()));
  connections.push_back(std::make_unique<RawClient>(port(), INADDR_LOOPBACK + 1));
  for (const auto& connection : connections) {
    ASSERT_TRUE(connection->Send(kGet));
    ASSERT_EQ(ReceiveUndated(*connection, kAnswer.size()), kAnswer);
  }
  const RawClient blocking(port());
  ASSERT_TRUE(blocking.Send("GET /block HTTP/1.1\r\nHost: x\r\n\r\n"));
  AwaitWaiting(1);
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += "GET /number HTTP/1.1\r\nHost: x\r\n\r\n";
  requests += "GET /number HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  for (const auto& connection : connections) ASSERT_TRUE(connection->Send(requests));
  unblocked_.Notify();
  const std::string others = connections.back()->Receive(100'000);
  EXPECT_THAT(others, HasSubstr("\r\n\r\n2HTTP/1.1 200 OK")) << "its first request is the second of all";
  EXPECT_THAT(others, EndsWith("\r\n\r\n42")) << "and its last one waited for one of the others each time";
  for (const auto& connection : connections) connection->Receive(100'000);
  EXPECT_EQ(numbered_, 51 * 21);
}

// A client's socket that is connected to this path.
Descriptor ConnectTo(const std::string& path) {
  Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(connect(client.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return client;
}

void SendTo(const Descriptor& client, const std::string& bytes) {
  ASSERT_EQ(send(client.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

// The bytes are read 16 KiB at a time. A Unix socket shows how many are left when the other request is served.
TEST(HttpServer, AClientThatSendsOnAfterItsLastAnswerLetsOthersHaveTheirTurns) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/socket";
  absl::Notification blocked, go;
  int sending = -1, left = -1;
  const auto server = HttpServer::Start({.option = "http-listen", .address = {.host = "", .port = 0, .path = path}},
                                        [&](const HttpRequest& head) -> HttpPlan {
                                          if (head.path == "/block") {
                                            blocked.Notify();
                                            go.WaitForNotification();
                                          }
                                          if (sending >= 0 && ioctl(sending, SIOCOUTQ, &left) != 0) left = -1;
                                          return {.serve = AnswerWith({.body = "hello\n"})};
                                        });
  ASSERT_TRUE(server.ok()) << server.status();
  const Descriptor other = ConnectTo(path), lingering = ConnectTo(path), blocking = ConnectTo(path);
  std::string answer(kAnswer.size(), '\0');
  SendTo(other, kGet);
  ASSERT_GT(recv(other.number(), answer.data(), answer.size(), 0), 0);
  SendTo(lingering, "no request\r\n\r\n");
  while (recv(lingering.number(), answer.data(), answer.size(), 0) > 0) continue;
  SendTo(blocking, "GET /block HTTP/1.1\r\nHost: x\r\n\r\n");
  blocked.WaitForNotification();
  SendTo(other, kGet);
  const std::string more(1 << 10, 'x');
  int64_t sent = 0;
  while (send(lingering.number(), more.data(), more.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) sent += more.size();
  ASSERT_GT(sent, 64 << 10);
  sending = lingering.number();
  go.Notify();
  ASSERT_GT(recv(other.number(), answer.data(), answer.size(), 0), 0);
  EXPECT_GT(left, 0) << "of " << sent;
}

TEST_F(HttpServerTest, ADefectEndsItsConnectionAlone) {
  std::string failure;
  Serve({.on_failure = [&failure](const std::string& what) { failure = what; }});
  EXPECT_EQ(Ask("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n"), "");
  EXPECT_THAT(Ask("GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(failure, "a defect");
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  Serve();
  const std::string answer = Ask("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, EverythingElseIsRefusedAndTheConnectionEnds) {
  Serve();
  EXPECT_THAT(Ask("GET /other HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"),
              StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(20'000, 'x')), StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, WhatIsNoRequestIsRefused) {
  Serve();
  for (const std::string head :
       {"GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/2", " / HTTP/1.1", "GET / HTTP/1.1\r\nHost: x\r\nno field",
        "GET / HTTP/1.1\r\nHost: x\r\n: x", "GET / HTTP/1.1\r\nHost: x\r\na : b"}) {
    EXPECT_THAT(Ask(head + "\r\n\r\n"), StartsWith("HTTP/1.1 400 ")) << head;
  }
}

TEST_F(HttpServerTest, AHeadMayBeSoLongAndNoLonger) {
  const std::string head = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: ";
  const std::string end = "\r\n\r\n";
  Serve({.head_bytes = 100});
  const size_t room = 100 - head.size() - end.size();
  EXPECT_THAT(Ask(head + std::string(room, 'x') + end), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(head + std::string(room + 1, 'x') + end), StartsWith("HTTP/1.1 431 "));
}

// Ranges that overlap would make an answer of any length.
TEST_F(HttpServerTest, RangesAreIgnored) {
  Serve();
  std::string ranges = "Range: bytes=0-";
  for (int i = 0; i < 1500; ++i) ranges += ",0-";
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + ranges + "\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Length: 6\r\n")));
}

TEST_F(HttpServerTest, AHeadHasAtMost128Fields) {
  Serve();
  const std::string head = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
  std::string fields;
  for (int i = 0; i < 126; ++i) fields += "a:b\r\n";
  EXPECT_THAT(Ask(head + fields + "\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask(head + fields + "a:b\r\n\r\n"), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask(head + fields + "a:b\r\na"), StartsWith("HTTP/1.1 431 ")) << "its end is not waited for";
}

// The reader may wait while bytes that it has read are removed.
TEST_F(HttpServerTest, RequestsMayComeInAnyPieces) {
  Serve();
  const RawClient client(port());
  const std::string request = kGet;
  for (size_t size = 1; size < 2 * request.size(); ++size) {
    ASSERT_TRUE(client.Send((request + request).substr(0, size)));
    const std::string early = size < request.size() ? "" : kAnswer;
    ASSERT_EQ(ReceiveUndated(client, early.size()), early);
    ASSERT_TRUE(client.Send((request + request).substr(size)));
    const std::string late = size < request.size() ? kAnswer + kAnswer : kAnswer;
    ASSERT_EQ(ReceiveUndated(client, late.size()), late);
  }
}

// A client may say that it sends nothing more, and wait.
TEST_F(HttpServerTest, AHalfClosedClientGetsItsAnswer) {
  Serve();
  const RawClient client(port());
  ASSERT_TRUE(client.Send(kGet));
  client.SendNothingMore();
  EXPECT_EQ(ReceiveUndated(client, kAnswer.size()), kAnswer);
  EXPECT_TRUE(client.IsClosed());
  const RawClient waiting(port());
  ASSERT_TRUE(waiting.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  AwaitWaiting(1);
  waiting.SendNothingMore();
  EXPECT_EQ(waiting.Receive(25), "HTTP/1.1 100 Continue\r\n\r\n") << "an interim response finds clients that left";
  EXPECT_EQ(left_, 0);
  server_ = nullptr;
}

// One that is gone cancels its call, also if the server has stopped reading what it sent.
TEST_F(HttpServerTest, AClientThatLeavesIsFoundBehindWhatItSent) {
  Serve();
  for (const size_t behind : {0, 70'000}) {
    auto client = std::make_unique<RawClient>(port());
    ASSERT_TRUE(client->Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(behind, 'x')));
    AwaitWaiting(1);
    client = nullptr;
    AwaitLeft();
  }
}

TEST_F(HttpServerTest, SlowClientsMakeRoomForNewOnes) {
  Serve({.connections = 4, .request = absl::Hours(1), .answer = absl::Hours(1)});
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 40; ++i) {
    slow.push_back(std::make_unique<RawClient>(port()));
    slow.back()->Send(i % 8 < 7 ? "GET /" : "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(slow.front()->IsClosed());
}

TEST_F(HttpServerTest, CallsInProgressLeaveRoomForProbes) {
  std::atomic<size_t> open = 0;
  Serve({.connections = 8, .on_connections = [&open](size_t connections) { open = connections; }});
  std::vector<std::unique_ptr<RawClient>> calls;
  for (int i = 0; i < 7; ++i) {
    calls.push_back(std::make_unique<RawClient>(port()));
    ASSERT_TRUE(calls.back()->Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  AwaitWaiting(7);
  for (int i = 0; i < 3; ++i) {
    const RawClient probe(port());
    ASSERT_TRUE(probe.Send(kGet));
    EXPECT_EQ(ReceiveUndated(probe, kAnswer.size()), kAnswer);
    EXPECT_EQ(open, 8u);
    EXPECT_THAT(Ask("GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
  }
  calls.pop_back();
  for (const absl::Time end = absl::Now() + absl::Seconds(kPatienceSeconds); waiting_ < 8 && absl::Now() < end;) {
    const RawClient next(port());
    next.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_GE(waiting_, 8) << "the place of a call that has ended is free";
  server_ = nullptr;
}

TEST_F(HttpServerTest, ARequestMustComeInItsTime) {
  Serve({.request = absl::Milliseconds(100)});
  const RawClient silent(port());
  const RawClient dripping(port());
  const absl::Time end = absl::Now() + absl::Seconds(kPatienceSeconds);
  while (dripping.Send("x") && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_LT(absl::Now(), end);
  EXPECT_TRUE(silent.IsClosed());
}

TEST_F(HttpServerTest, AnAnswerMustBeTakenInItsTime) {
  std::atomic<size_t> open = 0;
  Serve({.answer = absl::Milliseconds(100), .on_connections = [&open](size_t connections) { open = connections; }});
  const RawClient client(port());
  ASSERT_TRUE(client.Send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(client.Receive(1000), StartsWith("HTTP/1.1 200 "));
  const absl::Time end = absl::Now() + absl::Seconds(kPatienceSeconds);
  while (open > 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(open, 0u);
  EXPECT_LT(client.Receive(large_.size()).size(), large_.size() - 1000) << "the data in the sockets arrive anyway";
  server_ = nullptr;
}

TEST_F(HttpServerTest, AConnectionWithoutRequestsEnds) {
  Serve({.request = absl::Hours(1), .answer = absl::Hours(1), .idle = absl::Milliseconds(50)});
  const RawClient client(port());
  ASSERT_TRUE(client.Send(kGet));
  EXPECT_THAT(client.Receive(kAnswer.size() - 1), HasSubstr("Keep-Alive: timeout=0\r\n"));
  EXPECT_TRUE(client.IsClosed());
}

// A key and a certificate of its own.
std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> SelfSigned() {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  EXPECT_EQ(SSL_CTX_use_certificate(context.get(), certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), key.get()), 1);
  return context;
}

TEST_F(HttpServerTest, SpeaksTls) {
  signal(SIGPIPE, SIG_IGN);
  const auto context = SelfSigned();
  Serve({.request = absl::Milliseconds(500)}, context.get());
  const RawClient silent(port());
  RawClient client(port());
  ASSERT_TRUE(client.BeginTls());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.Send(kGet));
    EXPECT_THAT(ReceiveUndated(client, kAnswer.size()), kAnswer);
  }
  ASSERT_TRUE(client.Send("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.Receive(large_.size() + 1000), ::testing::EndsWith("\r\n\r\n" + large_));
  const RawClient plain(port());
  plain.Send(kGet);
  EXPECT_THAT(plain.Receive(1000), ::testing::Not(HasSubstr("hello")));
  EXPECT_TRUE(silent.IsClosed()) << "a handshake has the time of a request";
  auto waiting = std::make_unique<RawClient>(port());
  ASSERT_TRUE(waiting->BeginTls());
  ASSERT_TRUE(waiting->Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  AwaitWaiting(1);
  waiting->SendNothingMore();
  EXPECT_EQ(waiting->Receive(25), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(left_, 0);
  waiting = nullptr;
  AwaitLeft();
}

}  // namespace longshort::server::http_server_test
