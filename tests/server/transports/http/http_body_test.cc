// Bodies of requests by HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/transports/http/http_server_fixture.h"

namespace longshort::server::http_body_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using HttpBodyTest = HttpServerTest;

TEST_F(HttpBodyTest, ReadsBodiesOfBothKinds) {
  Serve();
  const RawClient client(port());
  const std::string body(70'000, 'b');
  ASSERT_TRUE(client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n" + body));
  const std::string answer = "HTTP/1.1 200 OK\r\n" + kDate +
                             "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 70000\r\n"
                             "Connection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n" +
                             body;
  EXPECT_EQ(ReceiveUndated(client, answer.size()), answer);
  ASSERT_TRUE(
      client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n"));
  EXPECT_THAT(client.Receive(10'000), ::testing::EndsWith("\r\n\r\nabcde"));
}

TEST_F(HttpBodyTest, ALargeBodyIsRefusedBeforeAndWhileItArrives) {
  Serve();
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(
      Ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186a1\r\n" + std::string(100'001, 'x')),
      StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
              StartsWith("HTTP/1.1 501 "));
}

TEST_F(HttpBodyTest, ABodyIsChargedAsItArrives) {
  Serve();
  const std::string part(90'001, 'x');  // the rest is not waited for
  EXPECT_THAT(Ask("POST /charged HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + part),
              AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("Connection: close")));
  EXPECT_THAT(Ask("POST /charged HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n" + part),
              AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("Connection: close")));
  EXPECT_THAT(Ask("POST /charged HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 80000\r\n\r\n" + part),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpBodyTest, AnAnswerThatNeedsNoBodyDoesNotWaitForIt) {
  Serve();
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("Connection: close")));
  EXPECT_THAT(Ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab"), HasSubstr("Connection: close"));
  const RawClient client(port());
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
  EXPECT_EQ(ReceiveUndated(client, kAnswer.size()), kAnswer) << "this body is here";
  ASSERT_TRUE(client.Send(kGet));
  EXPECT_EQ(ReceiveUndated(client, kAnswer.size()), kAnswer);
}

TEST_F(HttpBodyTest, ABodyMayBeServedInParts) {
  Serve();
  const std::string body(90'000, 'b');
  EXPECT_THAT(Ask("POST /parts HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 90000\r\n\r\n" + body),
              ::testing::EndsWith("\r\n\r\n" + body));
  EXPECT_THAT(Ask("POST /parts HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Ask("POST /parts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnonsense\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(HttpBodyTest, ABodyMayPauseAnywhere) {
  Serve();
  for (const std::string path : {"/echo", "/parts"}) {
    const RawClient client(port());
    ASSERT_TRUE(client.Send(absl::StrCat(
        "POST ", path, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")));
    for (const char byte : std::string("3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n")) {
      ASSERT_TRUE(client.Send(std::string(1, byte)));
      ASSERT_THAT(Get(port(), "/"), ::testing::EndsWith("hello\n")) << "others are served meanwhile";
    }
    EXPECT_THAT(client.Receive(10'000), ::testing::EndsWith("\r\n\r\nabcde")) << path;
  }
}

TEST_F(HttpBodyTest, ChunksMayBeShortButTheirHeadsNotLong) {
  Serve();
  std::string chunks;
  for (int i = 0; i < 100'000; ++i) chunks += "1\r\nx\r\n";
  for (const std::string path : {"/echo", "/parts"}) {
    const std::string head =
        absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT_THAT(Ask(absl::StrCat(head, chunks, "0\r\n\r\n")), ::testing::EndsWith(std::string(100'000, 'x')));
    EXPECT_THAT(Ask(absl::StrCat(head, "3;", std::string(70'000, 'x'))), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(Ask(absl::StrCat(head, "0\r\nTrailer: ", std::string(70'000, 'x'))), StartsWith("HTTP/1.1 400 "));
  }
}

TEST_F(HttpBodyTest, ATrailerHasAtMost16Fields) {
  Serve();
  std::string fields;
  for (int i = 0; i < 16; ++i) fields += "a:b\r\n";
  for (const std::string path : {"/echo", "/parts"}) {
    for (const std::string chunks : {"0\r\n", "3\r\nabc\r\n0;x=y\r\n"}) {
      const std::string begin = absl::StrCat(
          "POST ", path, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n", chunks);
      EXPECT_THAT(Ask(absl::StrCat(begin, fields, "\r\n")), StartsWith("HTTP/1.1 200 "));
      EXPECT_THAT(Ask(absl::StrCat(begin, fields, "a:\r\n\r\n")), StartsWith("HTTP/1.1 431 "));
    }
  }
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + fields + "a:\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Connection: close")));
}

TEST_F(HttpBodyTest, AClientMayWaitForTheServersConsent) {
  Serve();
  const RawClient client(port());
  ASSERT_TRUE(client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"));
  const std::string consent = "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(client.Receive(consent.size()), consent);
  ASSERT_TRUE(client.Send("abc"));
  EXPECT_THAT(client.Receive(10'000), ::testing::EndsWith("\r\n\r\nabc"));
}

TEST_F(HttpBodyTest, ASlowBodyTimesOut) {
  Serve({.body = absl::Milliseconds(50)});
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab"), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpBodyTest, CallsWhoseBodyIsComingAreNotInProgress) {
  Serve({.connections = 8});
  const RawClient slow(port());
  ASSERT_TRUE(slow.Send("POST /call HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
  const std::string consent = "HTTP/1.1 100 Continue\r\n\r\n";
  ASSERT_EQ(slow.Receive(consent.size()), consent);
  std::vector<std::unique_ptr<RawClient>> calls;
  for (int i = 0; i < 7; ++i) {
    calls.push_back(std::make_unique<RawClient>(port()));
    ASSERT_TRUE(calls.back()->Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  AwaitWaiting(7);
  ASSERT_TRUE(slow.Send("abc"));
  EXPECT_THAT(slow.Receive(20), StartsWith("HTTP/1.1 503 ")) << "seven others are, which is the limit";
  server_ = nullptr;
}

// A body that two servers read differently would smuggle a request past the first.
TEST_F(HttpBodyTest, NothingBehindABodyIsTakenForARequest) {
  Serve();
  const std::string smuggled = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string length : {"Content-Length: 30", "Transfer-Encoding: chunked", "Content-Length: 5, 6",
                                   "Content-Length: 0\r\nContent-Length: 22", "Content-Length: -1",
                                   "Transfer-Encoding: chunked\r\nContent-Length: 0",
                                   "Content-Length: 0\r\nTransfer-Encoding: chunked", "Content-Length: +0"}) {
    const std::string answers = Ask("POST / HTTP/1.1\r\nHost: x\r\n" + length + "\r\n\r\n" + smuggled);
    EXPECT_THAT(answers, ::testing::AnyOf(StartsWith("HTTP/1.1 400 "), StartsWith("HTTP/1.1 404 "))) << length;
    EXPECT_THAT(answers, ::testing::Not(HasSubstr("hello"))) << length;
  }
}

}  // namespace longshort::server::http_body_test
