// A server on loopback whose paths do what tests of HttpServer need.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/transports/http/http_message.h"
#include "server/transports/http/http_server.h"
#include "tests/server/transports/http/raw_client.h"

namespace longshort::server {

inline constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
inline const std::string kDate = "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n";
inline const std::string kAnswer = "HTTP/1.1 200 OK\r\n" + kDate +
                                   "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 6\r\n"
                                   "Connection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\nhello\n";

// Receives `count` bytes, with kDate for the dates in them.
inline std::string ReceiveUndated(const RawClient& client, size_t count) {
  std::string received = client.Receive(count);
  for (size_t at = 0; (at = received.find("\r\nDate: ", at)) != std::string::npos; at += kDate.size()) {
    received.replace(at + 2, kDate.size(), kDate);
  }
  return received;
}

class HttpServerTest : public ::testing::Test {
 protected:
  void Serve(const HttpLimits& limits = {}, SSL_CTX* tls = nullptr) {
    auto server = HttpServer::Start(
        {.option = "http-listen", .address = {.host = "127.0.0.1", .port = 0}},
        [this](const HttpRequest& head) -> HttpPlan {
          if (head.path == "/charged" || (head.method == "POST" && head.path == "/echo")) return {.serve = Echo};
          HttpResponse response = {.status = 404, .body = "Not Found\n"};
          if (head.method != "POST" && head.path == "/") response = {.body = "hello\n"};
          if (head.path == "/parts") return {.serve = [](const auto& exchange) { EchoParts(exchange, ""); }};
          if (head.path == "/call") return {.is_call = true, .serve = Echo};
          if (head.path == "/wait") return {.is_call = true, .serve = [this](const auto& exchange) { Wait(exchange); }};
          if (head.path == "/nothing") return {};
          if (head.path == "/throw") return {.serve = [](const auto&) { throw std::runtime_error("a defect"); }};
          if (head.path == "/large") response = {.body = large_};
          if (head.path == "/number") response = {.body = std::to_string(++numbered_)};
          if (head.path == "/block") {
            ++waiting_;
            unblocked_.WaitForNotification();
          }
          return {.serve = [response](const std::shared_ptr<HttpExchange>& exchange) { exchange->Answer(response); }};
        },
        tls, limits);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  static void Echo(const std::shared_ptr<HttpExchange>& exchange) {
    const int64_t room = exchange->request().path == "/charged" ? 90'000 : 100'000;
    const auto charge = [room](int64_t bytes) {
      return bytes > room ? absl::ResourceExhaustedError("much") : absl::OkStatus();
    };
    exchange->ReadBody(100'000, charge, [exchange](const absl::StatusOr<std::string>& body) {
      if (!body.ok()) return exchange->Answer({.status = HttpStatusOf(body.status())});
      exchange->Answer({.body = *body});
    });
  }
  static void EchoParts(const std::shared_ptr<HttpExchange>& exchange, const std::string& before) {
    exchange->Read([exchange, before](const absl::StatusOr<std::string>& part) {
      if (!part.ok()) return exchange->Answer({.status = HttpStatusOf(part.status())});
      if (part->empty()) return exchange->Answer({.body = before});
      EchoParts(exchange, before + *part);
    });
  }
  // Answers only what was refused.
  void Wait(const std::shared_ptr<HttpExchange>& exchange) {
    const absl::Status& status = exchange->request().body_status;
    if (!status.ok()) return exchange->Answer({.status = HttpStatusOf(status)});
    exchange->WhenClosed([this] { ++left_; });
    ++waiting_;
  }
  void AwaitWaiting(int count) const {
    for (const absl::Time end = absl::Now() + absl::Seconds(kPatienceSeconds); waiting_ < count && absl::Now() < end;) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(waiting_, count);
  }
  // Waits until the client that waited has left.
  void AwaitLeft() {
    for (const absl::Time end = absl::Now() + absl::Seconds(kPatienceSeconds); left_ < 1 && absl::Now() < end;) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(left_.exchange(0), 1);
    waiting_ = 0;
  }
  int port() const { return server_->port(); }
  std::string Ask(const std::string& request) const { return longshort::server::Ask(port(), request); }

  const std::string large_ = std::string(16 << 20, 'x');  // more than sockets hold
  std::atomic<int> waiting_ = 0;
  std::atomic<int> left_ = 0;  // of those that waited
  int numbered_ = 0;
  absl::Notification unblocked_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace longshort::server
