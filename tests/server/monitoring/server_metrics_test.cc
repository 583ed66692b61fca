#include "server/monitoring/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/core/fakes/fake_clock.h"

namespace longshort::server::server_metrics_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ServerMetrics, CountsCallsByFinalCode) {
  ServerMetrics metrics({0.1, 1});
  metrics.SetModelLoadDuration("m", 1, absl::Seconds(1));
  metrics.CountRequest({.rpc = "Generate", .model = "m", .version = 1}, absl::StatusCode::kOk, absl::Milliseconds(500));
  metrics.CountRequest({.rpc = "Generate", .model = "m", .version = 1}, absl::StatusCode::kOk, absl::Milliseconds(50));
  metrics.CountRequest({.rpc = "Generate", .model = ""}, absl::StatusCode::kNotFound, absl::ZeroDuration());
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr(R"(longshort_requests_total{code="OK",model="m",rpc="Generate",version="1"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(longshort_requests_total{code="NOT_FOUND",model="",rpc="Generate",version=""} 1)"));
  EXPECT_THAT(
      text, HasSubstr(R"(longshort_request_duration_seconds_bucket{model="m",rpc="Generate",version="1",le="0.1"} 1)"));
  EXPECT_THAT(text,
              HasSubstr(R"(longshort_request_duration_seconds_bucket{model="m",rpc="Generate",version="1",le="1"} 2)"));
}

TEST(ServerMetrics, AVersionHasSeriesWhileItServesAndForAWhileAfter) {
  core::FakeClock clock;
  ServerMetrics metrics({0.1, 1}, clock);
  const auto count = [&metrics](int64_t version, absl::StatusCode code) {
    metrics.CountRequest({.rpc = "Generate", .model = "m", .version = version}, code, absl::Milliseconds(50));
  };
  for (int64_t version = 1; version <= 100; ++version) {  // one after the other
    metrics.SetModelLoadDuration("m", version, absl::Seconds(1));
    count(version, absl::StatusCode::kOk);
    count(version, absl::StatusCode::kInternal);
    if (version > 1) metrics.RemoveModel("m", version - 1);
  }
  count(99, absl::StatusCode::kOk);  // was under way when its version left
  for (int scraper = 0; scraper < 3; ++scraper) {
    EXPECT_THAT(metrics.Serialize(),
                HasSubstr(R"(longshort_requests_total{code="OK",model="m",rpc="Generate",version="99"} 2)"));
  }
  EXPECT_THAT(metrics.Serialize(), Not(HasSubstr(R"(version="35")"))) << "the latest 64 are kept";
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(version="36")"));
  clock.Advance(kKeptAfterUnload + absl::Seconds(1));
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(version="99")")) << "no scrape since then";
  count(99, absl::StatusCode::kOk);  // ended after the scrape
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr(R"(longshort_requests_total{code="OK",model="m",rpc="Generate",version="100"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(longshort_requests_total{code="OK",model="m",rpc="Generate",version=""} 1)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(version="99")")));
  size_t series = 0;
  for (size_t at = text.find("longshort_requests_total{"); at != std::string::npos;
       at = text.find("longshort_requests_total{", at + 1)) {
    ++series;
  }
  EXPECT_EQ(series, 3) << "two codes of the one that serves, and what came late";
}

TEST(ServerMetrics, AVersionThatIsLoadedAgainKeepsItsSeries) {
  core::FakeClock clock;
  ServerMetrics metrics({1}, clock);
  metrics.SetModelLoadDuration("m", 1, absl::Seconds(1));
  metrics.CountRequest({.rpc = "Generate", .model = "m", .version = 1}, absl::StatusCode::kOk, absl::Seconds(1));
  metrics.RemoveModel("m", 1);
  metrics.SetModelLoadDuration("m", 1, absl::Seconds(1));
  clock.Advance(2 * kKeptAfterUnload);
  metrics.Serialize();
  EXPECT_THAT(metrics.Serialize(),
              HasSubstr(R"(longshort_requests_total{code="OK",model="m",rpc="Generate",version="1"} 1)"));
}

TEST(ServerMetrics, TheBuildIsKnownFromTheStart) {
  EXPECT_THAT(ServerMetrics({1}).Serialize(), HasSubstr("longshort_build_info{"));
}

}  // namespace longshort::server::server_metrics_test
