#include "server/http/http_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/server/http/raw_client.h"

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
  const std::string request = "GET /livez HTTP/1.1\r\n\r\n";
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
  EXPECT_EQ(StatusOf(port, "/livez"), 200);
}

TEST(HttpEndpoints, ServesMetricsAndNothingElse) {
  const auto endpoints = HttpEndpoints::Start({.address = kAnyPort, .metrics = [] { return "a_metric 1\n"; }});
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  const int port = (*endpoints)->address().port;
  (*endpoints)->Serve({});
  EXPECT_THAT(Get(port, "/metrics"), EndsWith("\r\n\r\na_metric 1\n"));
  EXPECT_THAT(Get(port, "/metrics?name[]=x"), EndsWith("\r\n\r\na_metric 1\n"));
  EXPECT_THAT(Ask(port, "POST /metrics HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
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
