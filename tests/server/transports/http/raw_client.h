// A client of HTTP that sends any bytes and returns those that come, with TLS or without.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "server/options/listening_sockets.h"

namespace longshort::server {

constexpr int kPatienceSeconds = 20;

class RawClient final {
 public:
  // `source`: the client's own address.
  explicit RawClient(int port, in_addr_t source = INADDR_LOOPBACK)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(source);
    EXPECT_EQ(bind(socket_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
    setsockopt(socket_.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }

  // Trusts any certificate. Call it before anything else.
  bool BeginTls() {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    tls_.reset(SSL_new(context.get()));
    return SSL_set_fd(tls_.get(), socket_.number()) == 1 && SSL_connect(tls_.get()) == 1;
  }

  // False if the connection is over.
  bool Send(const std::string& bytes) const {
    const auto size = static_cast<int>(bytes.size());
    if (tls_ != nullptr) return SSL_write(tls_.get(), bytes.data(), size) == size;
    return send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == size;
  }
  void SendNothingMore() const { shutdown(socket_.number(), SHUT_WR); }
  // Up to so many bytes; fewer if the connection ended before. A connection that goes on and brings nothing fails the
  // test.
  std::string Receive(size_t max) const {
    std::string received;
    size_t count = 0;
    while (count < max) {
      if (count == received.size()) received.resize(std::min(max, 2 * count + 65'536));
      const int room = static_cast<int>(received.size() - count);
      errno = 0;
      const ssize_t read = tls_ != nullptr ? SSL_read(tls_.get(), &received[count], room)
                                           : recv(socket_.number(), &received[count], room, 0);
      if (read < 0 && errno == EAGAIN) ADD_FAILURE() << "nothing came in " << kPatienceSeconds << " s";
      if (read <= 0) break;
      count += static_cast<size_t>(read);
    }
    return received.substr(0, count);
  }
  bool IsClosed() const { return Receive(1).empty(); }

 private:
  Descriptor socket_;
  std::unique_ptr<SSL, decltype(&SSL_free)> tls_{nullptr, SSL_free};
};

// The answer to a request on a connection of its own, which has to end with the answer.
inline std::string Ask(int port, const std::string& request) {
  const RawClient client(port);
  EXPECT_TRUE(client.Send(request));
  return client.Receive(100'000'000);
}

// "Connection: close" makes it end.
inline std::string Get(int port, const std::string& path, const std::string& fields = "") {
  return Ask(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields + "\r\n");
}

}  // namespace longshort::server
