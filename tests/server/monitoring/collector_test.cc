#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"
#include "server/monitoring/otlp_client.h"

namespace longshort::server::collector_test {

using ::testing::HasSubstr;
using ::testing::Not;

// OTLP over HTTP: these codes and no others, after the time that the collector names.
TEST(RetryAfter, HttpHasFourCodesThatMayBeTriedAgain) {
  for (const int status : {429, 502, 503, 504}) EXPECT_EQ(RetryAfter(status, ""), absl::ZeroDuration()) << status;
  for (const int status : {301, 400, 401, 404, 413, 500, 501})
    EXPECT_EQ(RetryAfter(status, "1"), std::nullopt) << status;
  EXPECT_EQ(RetryAfter(429, "7"), absl::Seconds(7));
  EXPECT_EQ(RetryAfter(503, "Fri, 27 Nov 2026 07:00:00 GMT"), absl::ZeroDuration());
  EXPECT_EQ(RetryAfter(503, "-1"), absl::ZeroDuration());
}

OtlpAnswer SendTo(const std::string& endpoint) {
  const auto client = OtlpClient::Make({.endpoint = endpoint, .path = "/v1/traces"}, {});
  EXPECT_TRUE(client.ok()) << client.status();
  return (*client)->Send("", MonotonicNow() + absl::Seconds(10));
}

// At an address of this machine that nothing listens on.
TEST(OtlpClient, TheErrorNamesThePortOfGrpcAsTheLikelyCause) {
  const OtlpAnswer answer = SendTo("127.43.17.1:4317");
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(answer.retry, absl::ZeroDuration());
  EXPECT_THAT(std::string(answer.status.message()), HasSubstr("port 4317 is usually for OTLP over gRPC"));
  EXPECT_THAT(std::string(SendTo("127.43.17.1:4318").status.message()), Not(HasSubstr("gRPC")));
}

}  // namespace longshort::server::collector_test
