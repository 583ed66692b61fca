#include "server/http/http_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

namespace longshort {
namespace {

const ListenAddress kAnyPort = {.host = "127.0.0.1", .port = 0};

TEST(HttpEndpoints, ReadinessFollowsTheServer) {
  const auto endpoints = HttpEndpoints::Start(kAnyPort, [] { return "a_metric 1\n"; });
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  httplib::Client client("127.0.0.1", (*endpoints)->port());
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  EXPECT_EQ(client.Get("/livez")->status, 200);
  (*endpoints)->SetReady(true);
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  (*endpoints)->SetReady(false);
  EXPECT_EQ(client.Get("/readyz")->status, 503);
}

TEST(HttpEndpoints, ServesMetricsAndNothingElse) {
  const auto endpoints = HttpEndpoints::Start(kAnyPort, [] { return "a_metric 1\n"; });
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  httplib::Client client("127.0.0.1", (*endpoints)->port());
  EXPECT_EQ(client.Get("/metrics")->body, "a_metric 1\n");
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Post("/metrics")->status, 404);
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
