#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longshort {
namespace {

using ::testing::HasSubstr;

TEST(ServerMetrics, CountsCallsByFinalCode) {
  ServerMetrics metrics({0.1, 1});
  metrics.CountRequest("Generate", "m", absl::StatusCode::kOk, absl::Milliseconds(500));
  metrics.CountRequest("Generate", "m", absl::StatusCode::kOk, absl::Milliseconds(50));
  metrics.CountRequest("Generate", "", absl::StatusCode::kNotFound, absl::ZeroDuration());
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr(R"(longshort_requests_total{code="OK",model="m",rpc="Generate"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(longshort_requests_total{code="NOT_FOUND",model="",rpc="Generate"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(longshort_request_duration_seconds_bucket{model="m",rpc="Generate",le="0.1"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(longshort_request_duration_seconds_bucket{model="m",rpc="Generate",le="1"} 2)"));
}

TEST(ServerMetrics, TheBuildIsKnownFromTheStart) {
  EXPECT_THAT(ServerMetrics({1}).Serialize(), HasSubstr("longshort_build_info{"));
}

}  // namespace
}  // namespace longshort
