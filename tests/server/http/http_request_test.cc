#include "server/http/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace longshort {
namespace {

using ::testing::Eq;
using ::testing::Optional;

HttpRequestHead HeadOf(const std::string& bytes) {
  const auto head = ReadHttpRequest(bytes);
  EXPECT_TRUE(head.ok()) << head.status();
  EXPECT_TRUE(head.ok() && head->has_value());
  return head.ok() ? head->value_or(HttpRequestHead()) : HttpRequestHead();
}

TEST(HttpRequest, IsReadFromTheFirstHead) {
  const std::string first = "GET /metrics?name=x HTTP/1.1\r\nHost: a\r\nauthorization:  Bearer b \r\n\r\n";
  const HttpRequestHead head = HeadOf(first + "GET /livez HTTP/1.1\r\n\r\n");
  EXPECT_EQ(head.bytes, first.size());
  EXPECT_EQ(head.request.method, "GET");
  EXPECT_EQ(head.request.path, "/metrics");
  EXPECT_THAT(head.request.authorization, Optional(Eq("Bearer b")));
  EXPECT_TRUE(head.request.keep_alive);
  EXPECT_FALSE(head.request.has_body);
}

TEST(HttpRequest, MayEndTheConnection) {
  EXPECT_FALSE(HeadOf("GET / HTTP/1.0\r\n\r\n").request.keep_alive);
  EXPECT_TRUE(HeadOf("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").request.keep_alive);
  EXPECT_FALSE(HeadOf("GET / HTTP/1.1\r\nconnection: close\r\n\r\n").request.keep_alive);
  EXPECT_FALSE(HeadOf("GET / HTTP/1.1\r\nConnection: TE, close\r\n\r\n").request.keep_alive);
}

TEST(HttpRequest, MayHaveABody) {
  EXPECT_TRUE(HeadOf("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc").request.has_body);
  EXPECT_TRUE(HeadOf("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").request.has_body);
  EXPECT_FALSE(HeadOf("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").request.has_body);
  // What one field says is not taken back by the next.
  for (const std::string body : {"Content-Length: 3", "Transfer-Encoding: chunked", "content-length: +0"}) {
    EXPECT_TRUE(HeadOf("POST / HTTP/1.1\r\n" + body + "\r\nContent-Length: 0\r\n\r\n").request.has_body) << body;
  }
}

TEST(HttpRequest, TwoAuthorizationsAreNone) {
  const HttpRequest request = HeadOf("GET / HTTP/1.1\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n").request;
  EXPECT_THAT(request.authorization, Optional(Eq("a,b")));
}

TEST(HttpRequest, WhatHasNotComeWholeIsNone) {
  for (const std::string bytes : {"", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n"}) {
    const auto head = ReadHttpRequest(bytes);
    ASSERT_TRUE(head.ok()) << bytes;
    EXPECT_FALSE(head->has_value()) << bytes;
  }
}

TEST(HttpRequest, WhatIsNoneIsRefused) {
  for (const std::string line : {"", "GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/2", "GET x HTTP/1.1", " / HTTP/1.1",
                                 "GET / HTTP/1.1\r\nno field", "GET / HTTP/1.1\r\n: x", "GET / HTTP/1.1\r\na : b",
                                 "GET / HTTP/1.1\r\na: b\r\n goes on"}) {
    EXPECT_EQ(ReadHttpRequest(line + "\r\n\r\n").status().code(), absl::StatusCode::kInvalidArgument) << line;
  }
}

}  // namespace
}  // namespace longshort
