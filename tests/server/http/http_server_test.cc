#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"

namespace longshort {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGet[] = "GET / HTTP/1.1\r\n\r\n";
constexpr int kPatienceSeconds = 20;

// A client that sends what it likes and reads what comes.
class RawClient final {
 public:
  explicit RawClient(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    setsockopt(socket_.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  // False if the connection is over.
  bool Send(const std::string& bytes) const {
    return send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // Up to so many bytes; fewer if the connection ended before.
  std::string Receive(size_t most) const {
    std::string received(most, ' ');
    const ssize_t count = recv(socket_.number(), received.data(), most, MSG_WAITALL);
    return received.substr(0, count < 0 ? 0 : static_cast<size_t>(count));
  }
  bool IsClosed() const { return Receive(1).empty(); }

 private:
  Descriptor socket_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Serve(const HttpLimits& limits = {}, SSL_CTX* tls = nullptr) {
    auto server =
        HttpServer::Start({.option = "http-listen", .address = {.host = "127.0.0.1", .port = 0}},
                          {{"/", [](const HttpRequest&) -> HttpResponse { return {.body = "hello\n"}; }},
                           {"/large", [this](const HttpRequest&) -> HttpResponse { return {.body = large_}; }}},
                          tls, limits);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  // What comes of this request, on a connection of its own.
  std::string Ask(const std::string& request) const {
    const RawClient client(port());
    EXPECT_TRUE(client.Send(request));
    return client.Receive(100'000'000);
  }

  const std::string large_ = std::string(16 << 20, 'x');  // more than sockets hold
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
  Serve();
  const RawClient client(port());
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 6\r\n"
      "Connection: keep-alive\r\n\r\nhello\n";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(kGet));
    EXPECT_EQ(client.Receive(answer.size()), answer);
  }
  ASSERT_TRUE(client.Send(std::string(kGet) + kGet + "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(client.Receive(2 * answer.size()), answer + answer) << "those that come together, too";
  EXPECT_THAT(client.Receive(10'000), HasSubstr("Connection: close"));
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  Serve();
  const std::string answer = Ask("HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 6"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, EverythingElseIsRefusedAndTheConnectionEnds) {
  Serve();
  EXPECT_THAT(Ask("GET /other HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nA: " + std::string(20'000, 'x')), StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, AHeadMayBeSoLongAndNoLonger) {
  const std::string head = "GET / HTTP/1.1\r\nConnection: close\r\nA: ";
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
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nConnection: close\r\n" + ranges + "\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Length: 6\r\n")));
}

TEST_F(HttpServerTest, SlowClientsMakeRoomForNewOnes) {
  Serve({.connections = 4, .request = absl::Hours(1), .answer = absl::Hours(1)});
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 40; ++i) {
    slow.push_back(std::make_unique<RawClient>(port()));
    slow.back()->Send(i % 8 < 7 ? "GET /" : "GET /large HTTP/1.1\r\n\r\n");
  }
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(slow.front()->IsClosed());
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
  Serve({.answer = absl::Milliseconds(100)});
  const RawClient client(port());
  ASSERT_TRUE(client.Send("GET /large HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(client.Receive(1000), StartsWith("HTTP/1.1 200 "));
  absl::SleepFor(absl::Milliseconds(200));  // what the sockets hold comes all the same
  EXPECT_LT(client.Receive(large_.size()).size(), large_.size() - 1000);
}

TEST_F(HttpServerTest, AConnectionWithoutRequestsEnds) {
  Serve({.idle = absl::Milliseconds(50)});
  const RawClient client(port());
  ASSERT_TRUE(client.Send(kGet));
  EXPECT_THAT(client.Receive(10'000), ::testing::EndsWith("hello\n")) << "until the connection ended";
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
  const auto context = SelfSigned();
  Serve({.request = absl::Milliseconds(500)}, context.get());
  const RawClient silent(port());
  httplib::SSLClient client("127.0.0.1", port());
  client.enable_server_certificate_verification(false);
  client.set_keep_alive(true);
  for (int i = 0; i < 2; ++i) {
    const httplib::Result answer = client.Get("/");
    ASSERT_TRUE(answer) << httplib::to_string(answer.error());
    EXPECT_EQ(answer->body, "hello\n");
  }
  const httplib::Result large = client.Get("/large");
  ASSERT_TRUE(large) << httplib::to_string(large.error());
  EXPECT_EQ(large->body, large_);
  const RawClient plain(port());
  plain.Send(kGet);
  EXPECT_THAT(plain.Receive(1000), ::testing::Not(HasSubstr("hello")));
  EXPECT_TRUE(silent.IsClosed()) << "a handshake has the time of a request";
}

}  // namespace
}  // namespace longshort
