#include "server/transports/http/http_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/server/transports/http/raw_client.h"

namespace longshort::server::http_endpoints_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The status of a GET, or -1 if no answer came.
int StatusOf(int port, const std::string& path) {
  const std::string answer = Get(port, path);
  return answer.rfind("HTTP/1.1 ", 0) == 0 ? std::stoi(answer.substr(9)) : -1;
}

const ListenAddress kAnyPort = {.host = "127.0.0.1", .port = 0};

TEST(HttpEndpoints, ReadinessFollowsTheServer) {
  const auto endpoints = HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return "a_metric 1\n"; }});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const int port = (*endpoints)->address().port;
  EXPECT_EQ(StatusOf(port, "/readyz"), 503);
  EXPECT_EQ(StatusOf(port, "/livez"), 200);
  (*endpoints)->SetReady(true);
  EXPECT_EQ(StatusOf(port, "/readyz"), 200);
  (*endpoints)->SetReady(false);
  EXPECT_EQ(StatusOf(port, "/readyz"), 503);
}

TEST(HttpEndpoints, ADrainingServerClosesConnections) {
  const auto endpoints = HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return ""; }});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  (*endpoints)->SetReady(true);
  const RawClient client((*endpoints)->address().port);
  const std::string request = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_TRUE(client.Send(request));
  EXPECT_THAT(client.Receive(50), HasSubstr("HTTP/1.1 200 OK"));
  (*endpoints)->SetReady(false);
  ASSERT_TRUE(client.Send(request));
  EXPECT_THAT(client.Receive(10'000), HasSubstr("Connection: close"));
}

TEST(HttpEndpoints, AForbiddenReadOfTheMetricsSaysWhy) {
  const auto may_read = [](const std::optional<std::string>& authorization) {
    if (!authorization.has_value()) return absl::UnauthenticatedError("show something");
    return *authorization == "Bearer good" ? absl::OkStatus() : absl::PermissionDeniedError("not that");
  };
  const auto endpoints = HttpEndpoints::Start(
      {.address = kAnyPort, .metrics = [] { return "a_metric 1\n"; }, .may_read_metrics = may_read});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const int port = (*endpoints)->address().port;
  const std::string nothing = Get(port, "/metrics");
  EXPECT_THAT(nothing, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(nothing, HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"));
  EXPECT_THAT(nothing, EndsWith("\r\n\r\nshow something\n"));
  const std::string good = "authorization:  Bearer good \r\n";
  EXPECT_THAT(Get(port, "/metrics", good + good), StartsWith("HTTP/1.1 403 ")) << "two are none";
  EXPECT_THAT(Get(port, "/metrics", good), EndsWith("\r\n\r\na_metric 1\n"));
  EXPECT_THAT(Get(port, "/info"), HasSubstr(R"("may_read_metrics":false)"));
  EXPECT_THAT(Get(port, "/info", good), HasSubstr(R"("may_read_metrics":true)"));
  EXPECT_EQ(StatusOf(port, "/livez"), 200);
}

TEST(HttpEndpoints, ServesMetricsAndNothingElse) {
  const auto endpoints = HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return "a_metric 1\n"; }});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const int port = (*endpoints)->address().port;
  (*endpoints)->Serve({});
  EXPECT_THAT(Get(port, "/metrics"), EndsWith("\r\n\r\na_metric 1\n"));
  EXPECT_THAT(Get(port, "/metrics?name[]=x"), EndsWith("\r\n\r\na_metric 1\n"));
}

TEST(HttpEndpoints, TheMetricsAreRenderedAtMostTenTimesASecond) {
  std::atomic<int> rendered = 0;
  const auto endpoints = HttpEndpoints::Start(
      {.address = kAnyPort, .metrics = [&] { return absl::StrCat("rendered ", ++rendered, "\n"); }});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const int port = (*endpoints)->address().port;
  const absl::Time begin = absl::Now();
  std::vector<std::thread> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back([&] { EXPECT_THAT(Get(port, "/metrics"), HasSubstr("rendered ")); });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LE(rendered, 1 + (absl::Now() - begin) / absl::Milliseconds(100));
  const int before = rendered;
  EXPECT_THAT(Get(port, "/metrics"), HasSubstr(absl::StrCat("rendered ", before + 1))) << "what was true when it asked";
}

HttpFront OneCall(const std::string& path) {
  return [path](const HttpRequest& head) -> std::optional<HttpPlan> {
    if (head.path != path) return std::nullopt;
    return HttpPlan{.methods = {"POST"}, .serve = AnswerWith({.body = "called\n"})};
  };
}

// The status of a POST to /call with these fields.
int Call(int port, const std::string& fields) {
  const std::string answer = Ask(port, "POST /call HTTP/1.1\r\nConnection: close\r\n" + fields + "\r\n");
  return answer.rfind("HTTP/1.1 ", 0) == 0 ? std::stoi(answer.substr(9)) : -1;
}

// A page could otherwise let its own name become a loopback address, and read what it finds there.
TEST(HttpEndpoints, OnlyNamesOfThisMachineAreServed) {
  const auto endpoints = HttpEndpoints::Start(
      {.address = kAnyPort, .metrics = [] { return ""; }, .checks_host = true, .hosts = {"known.example"}});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const int port = (*endpoints)->address().port;
  (*endpoints)->Serve({OneCall("/call")});
  for (const char* host :
       {"localhost", "LOCALHOST:8501", "127.0.0.1", "127.1.2.3:80", "[::1]:8501", "known.example:1"}) {
    EXPECT_EQ(Call(port, absl::StrCat("Host: ", host, "\r\n")), 200) << host;
  }
  for (const char* host :
       {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]", "127.1", ""}) {
    EXPECT_EQ(Call(port, absl::StrCat("Host: ", host, "\r\n")), 421) << host;
  }
}

TEST(HttpEndpoints, PagesOfOtherOriginsCannotCall) {
  const auto start = [](const std::string& origin) {
    auto endpoints = HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return ""; }, .cors_origin = origin});
    EXPECT_TRUE(endpoints.ok()) << endpoints.status();
    (*endpoints)->Serve({OneCall("/call")});
    return *std::move(endpoints);
  };
  const auto closed = start("");
  const auto opened = start("https://app.example");
  const std::string host = "Host: server.example:1\r\n";
  struct Case {
    const char* fields;
    int closed;
    int opened;
  };
  for (const auto& [fields, if_closed, if_opened] :
       std::vector<Case>{{"", 200, 200},
                         {"Sec-Fetch-Site: same-origin\r\nOrigin: https://proxied.example\r\n", 200, 200},
                         {"Sec-Fetch-Site: none\r\n", 200, 200},
                         {"Sec-Fetch-Site: cross-site\r\n", 403, 403},
                         {"Sec-Fetch-Site: same-site\r\n", 403, 403},
                         {"Sec-Fetch-Site: cross-site\r\nOrigin: https://app.example\r\n", 403, 200},
                         {"Origin: https://app.example\r\n", 403, 200},
                         {"Origin: https://evil.example\r\n", 403, 403},
                         {"Origin: null\r\n", 403, 403},
                         {"Origin: http://server.example\r\n", 403, 403},
                         {"Origin: http://Server.example:1\r\n", 200, 200}}) {
    EXPECT_EQ(Call(closed->address().port, host + fields), if_closed) << fields;
    EXPECT_EQ(Call(opened->address().port, host + fields), if_opened) << fields;
  }
  EXPECT_THAT(Get(closed->address().port, "/", "Sec-Fetch-Site: cross-site\r\n"), StartsWith("HTTP/1.1 200 "))
      << "a link leads to the page";
}

// A user types the address into a browser, or expects a REST interface.
TEST(HttpEndpoints, TheRootAndUnknownPathsSayWhatIsThereAndWhereGrpcIs) {
  const auto endpoints =
      HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return ""; }, .grpc = "127.0.0.1:8500"});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const int port = (*endpoints)->address().port;
  (*endpoints)->Serve({});
  EXPECT_EQ(StatusOf(port, "/"), 200);
  EXPECT_EQ(StatusOf(port, "/v2/models/m/infer"), 404);
  for (const char* path : {"/", "/v2/models/m/infer", "/favicon.ico"}) {
    const std::string answer = Get(port, path);
    for (const char* part : {"/metrics", "/readyz", "gRPC", "127.0.0.1:8500"}) {
      EXPECT_THAT(answer, HasSubstr(part)) << path;
    }
  }
}

TEST(HttpEndpoints, APathThatAFrontMayHaveIsUnavailableUntilThereAreFronts) {
  const auto endpoints = HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return ""; }});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const std::string answer = Get((*endpoints)->address().port, "/v2/health/ready");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_EQ(StatusOf((*endpoints)->address().port, "/livez"), 200);
}

TEST(HttpEndpoints, APortInUseIsNamed) {
  const auto first = HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return ""; }});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = HttpEndpoints::Start(
      {.address = {.host = "127.0.0.1", .port = (*first)->address().port}, .metrics = [] { return ""; }});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--http-listen=127.0.0.1:"));
}

}  // namespace longshort::server::http_endpoints_test
