#include "server/http/http_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <optional>
#include <string>

namespace longshort {
namespace {

// The status of a GET, or -1 if no answer came.
int StatusOf(httplib::Client& client, const char* path) {
  const httplib::Result result = client.Get(path);
  return result ? result->status : -1;
}

const ListenAddress kAnyPort = {.host = "127.0.0.1", .port = 0};

TEST(HttpEndpoints, ReadinessFollowsTheServer) {
  const auto endpoints = HttpEndpoints::Start(kAnyPort, [] { return "a_metric 1\n"; });
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  httplib::Client client("127.0.0.1", (*endpoints)->port());
  EXPECT_EQ(StatusOf(client, "/readyz"), 503);
  EXPECT_EQ(StatusOf(client, "/livez"), 200);
  (*endpoints)->SetReady(true);
  EXPECT_EQ(StatusOf(client, "/readyz"), 200);
  (*endpoints)->SetReady(false);
  EXPECT_EQ(StatusOf(client, "/readyz"), 503);
}

TEST(HttpEndpoints, WhoMayNotReadTheMetricsIsToldWhy) {
  const auto may_read = [](const std::optional<std::string>& authorization) {
    if (!authorization.has_value()) return absl::UnauthenticatedError("show something");
    return *authorization == "Bearer good" ? absl::OkStatus() : absl::PermissionDeniedError("not that");
  };
  const auto endpoints = HttpEndpoints::Start(
      kAnyPort, [] { return "a_metric 1\n"; }, may_read);
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  httplib::Client client("127.0.0.1", (*endpoints)->port());
  const httplib::Result nothing = client.Get("/metrics");
  ASSERT_TRUE(nothing) << httplib::to_string(nothing.error());
  EXPECT_EQ(nothing->status, 401);
  EXPECT_EQ(nothing->get_header_value("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(nothing->body, "show something\n");
  const httplib::Result twice =
      client.Get("/metrics", {{"Authorization", "Bearer good"}, {"Authorization", "Bearer good"}});
  ASSERT_TRUE(twice) << httplib::to_string(twice.error());
  EXPECT_NE(twice->status, 200);
  const httplib::Result good = client.Get("/metrics", {{"Authorization", "Bearer good"}});
  ASSERT_TRUE(good) << httplib::to_string(good.error());
  EXPECT_EQ(good->body, "a_metric 1\n");
  EXPECT_EQ(StatusOf(client, "/livez"), 200);
}

TEST(HttpEndpoints, ServesMetricsAndNothingElse) {
  const auto endpoints = HttpEndpoints::Start(kAnyPort, [] { return "a_metric 1\n"; });
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  httplib::Client client("127.0.0.1", (*endpoints)->port());
  const httplib::Result metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics) << httplib::to_string(metrics.error());
  EXPECT_EQ(metrics->body, "a_metric 1\n");
  EXPECT_EQ(StatusOf(client, "/"), 404);
  const httplib::Result posted = client.Post("/metrics");
  ASSERT_TRUE(posted) << httplib::to_string(posted.error());
  EXPECT_EQ(posted->status, 404);
}

TEST(HttpEndpoints, APortInUseIsNamed) {
  const auto first = HttpEndpoints::Start(kAnyPort, [] { return ""; });
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = HttpEndpoints::Start({.host = "127.0.0.1", .port = (*first)->port()}, [] { return ""; });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), ::testing::HasSubstr("--http-listen=127.0.0.1:"));
}

}  // namespace
}  // namespace longshort
