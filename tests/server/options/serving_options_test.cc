#include "server/options/serving_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "core/classification/batch_former.h"
#include "server/options/server_options.h"

namespace longshort::server::serving_options_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

absl::StatusOr<ServingOptions> Parse(const std::string& text, const ServingOptions& server = {}) {
  return ParseServingOptions(text, "m/serving.json", server);
}

std::string ErrorOf(const std::string& text) {
  const absl::Status status = Parse(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), StartsWith("m/serving.json: ")) << text;
  return std::string(status.message());
}

TEST(ServingOptions, WithoutAFileAreTheServers) {
  const auto line = ParseCommandLine({"--max-queued-requests=7", "--max-queue-time=9s", "--max-running-per-client=3",
                                      "--max-batch-size=5", "--step-time=7ms", "--session-time-to-live=4m"});
  ASSERT_TRUE(line.ok()) << line.status();
  const auto options = ReadServingOptions(::testing::TempDir() + "/no/such/serving.json", line->options.serving);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->limits.max_queued, 7);
  EXPECT_EQ(options->limits.max_queued_cost, absl::Seconds(9));
  EXPECT_EQ(options->limits.max_queued_per_client, kUnlimited);
  EXPECT_EQ(options->limits.max_queued_cost_per_client, absl::InfiniteDuration());
  EXPECT_EQ(options->order.max_running_per_client, 3);
  EXPECT_EQ(options->order.rounds.weights, core::PriorityRounds::Options().weights);
  EXPECT_EQ(options->max_batch_size, 5);
  EXPECT_EQ(options->max_batch_tokens, core::BatchFormer::Options().max_batch_tokens);
  EXPECT_EQ(options->max_queue_delay, absl::ZeroDuration());
  EXPECT_EQ(options->max_streams, 64);
  EXPECT_EQ(options->step_time, absl::Milliseconds(7));
  EXPECT_EQ(options->session_time_to_live, absl::Minutes(4));
  EXPECT_EQ(options->devices, "cpu");
  EXPECT_EQ(options->version_policy.Choose({1, 2}), std::set<int64_t>{2});
  EXPECT_TRUE(options->given.empty());
}

TEST(ServingOptions, OverrideTheServers) {
  ServingOptions server;
  server.limits.max_queued_per_client = 5;
  const auto options = Parse(R"({
    "version_policy": {"latest": 2},
    "devices": "cpu:1",
    "priority_weights": {"high": 9, "low": 2},
    "max_queued_requests": 10,
    "max_queue_time": "2s",
    "max_queued_requests_per_client": 0,
    "max_queue_time_per_client": "1500ms",
    "max_running_per_client": 1,
    "max_batch_size": 11,
    "max_batch_tokens": 12,
    "max_queue_delay": "5ms",
    "max_streams": 13,
    "step_time": "250ms",
    "cache_bytes": 14,
    "session_time_to_live": "1h"
  })",
                             server);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->version_policy.latest, 2);
  EXPECT_EQ(options->devices, "cpu:1");
  EXPECT_THAT(options->order.rounds.weights, ElementsAre(2, 4, 9)) << "low, normal, high";
  EXPECT_EQ(options->limits.max_queued, 10);
  EXPECT_EQ(options->limits.max_queued_cost, absl::Seconds(2));
  EXPECT_EQ(options->limits.max_queued_per_client, kUnlimited) << "0 lifts the server's";
  EXPECT_EQ(options->limits.max_queued_cost_per_client, absl::Milliseconds(1500));
  EXPECT_EQ(options->order.max_running_per_client, 1);
  EXPECT_EQ(options->max_batch_size, 11);
  EXPECT_EQ(options->max_batch_tokens, 12);
  EXPECT_EQ(options->max_queue_delay, absl::Milliseconds(5));
  EXPECT_EQ(options->max_streams, 13);
  EXPECT_EQ(options->step_time, absl::Milliseconds(250));
  EXPECT_EQ(options->cache_bytes, 14);
  EXPECT_EQ(options->session_time_to_live, absl::Hours(1));
  EXPECT_EQ(options->given.size(), 15U);
  EXPECT_EQ(options->given.at("max_queue_time_per_client"), "1.5s");
  EXPECT_EQ(options->given.at("priority_weights"), "2:4:9");
}

TEST(ServingOptions, VersionPolicies) {
  EXPECT_EQ(Parse(R"({"version_policy": "all"})")->version_policy.Choose({1, 5}), (std::set<int64_t>{1, 5}));
  const auto specific = Parse(R"({"version_policy": {"specific": [5, 3]}})");
  ASSERT_TRUE(specific.ok()) << specific.status();
  EXPECT_EQ(specific->version_policy.Choose({1, 4, 5}), std::set<int64_t>{5});
  EXPECT_EQ(specific->given.at("version_policy"), "specific 3 5");
  EXPECT_EQ(Parse(R"({"version_policy": {"latest": 2}})")->version_policy.Choose({1, 4, 5}), (std::set<int64_t>{4, 5}));
  for (const char* wrong : {R"("newest")", "1", "{}", R"({"latest": 1, "specific": [1]})", R"({"specific": []})",
                            R"({"specific": [0]})", R"({"specific": [1, 1]})", R"({"specific": "all"})", "null",
                            R"({"latest": 0})", R"({"latest": 1025})", R"({"latest": true})", R"({"last": 1})"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(R"({"version_policy": )", wrong, "}")), HasSubstr("version_policy")) << wrong;
  }
}

TEST(ServingOptions, WhatIsWrongIsNamedWithItsValueAndTheLimit) {
  EXPECT_EQ(ErrorOf(R"({"max_batch_size": 0})"), "m/serving.json: max_batch_size is 0; it must be in [1, 1024]");
  EXPECT_EQ(ErrorOf(R"({"max_queue_delay": "2m"})"), "m/serving.json: max_queue_delay is '2m'; it must be in [0, 1m]");
  EXPECT_THAT(ErrorOf(R"({"max_queue_time": 5})"), AllOf(HasSubstr("max_queue_time is 5"), HasSubstr("a string")));
  EXPECT_THAT(ErrorOf(R"({"max_queue_time": "5"})"), HasSubstr("a duration with its unit"));
  EXPECT_THAT(ErrorOf(R"({"max_queue_time": "nan"})"), HasSubstr("a duration with its unit"));
  EXPECT_THAT(ErrorOf(R"({"max_queue_time": "inf"})"), HasSubstr("[1ms, 1h]"));
  EXPECT_THAT(ErrorOf(R"({"max_queued_requests": 0})"), HasSubstr("[1, 1048576]"));
  EXPECT_THAT(ErrorOf(R"({"max_running_per_client": -1})"), HasSubstr("[0, 65536]"));
  EXPECT_THAT(ErrorOf(R"({"max_streams": 1.5})"), HasSubstr("an integer"));
  EXPECT_THAT(ErrorOf(R"({"priority_weights": {"high": 0}})"),
              AllOf(HasSubstr("priority_weights.high is 0"), HasSubstr("[1, 1000000]")));
  EXPECT_THAT(ErrorOf(R"({"priority_weights": {"urgent": 1}})"),
              HasSubstr("unknown field 'urgent' of priority_weights"));
  EXPECT_THAT(ErrorOf(R"({"priority_weights": [1, 2, 3]})"), HasSubstr("an object"));
  EXPECT_EQ(
      ErrorOf(R"({"devices": "abacus"})"),
      "m/serving.json: devices is 'abacus'; there is no device 'abacus'; write cpu, cpu:N for N workers, or cuda:N "
      "for GPU N");
  EXPECT_THAT(ErrorOf(R"({"devices": "cpu,cuda"})"), HasSubstr("'cuda' is not a GPU"));
  EXPECT_THAT(ErrorOf(R"({"max_batch": 1})"),
              AllOf(HasSubstr("unknown field 'max_batch'"), HasSubstr("max_batch_size")));
  EXPECT_THAT(ErrorOf(R"({"max_streams": 1, "max_streams": 2})"), HasSubstr("duplicate key 'max_streams'"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("not an object"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("not valid JSON"));
}

TEST(ServingOptions, AFileThatIsTooLongIsNotRead) {
  const std::string path = ::testing::TempDir() + "/long_serving.json";
  std::ofstream(path) << std::string(100'000, ' ') << "{}";
  const absl::Status status = ReadServingOptions(path, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(ServingOptions, AFieldOfTheOtherKindOfModelIsRefused) {
  const auto classifiers = Parse(R"({"max_queue_delay": "5ms", "max_queued_requests": 9})");
  EXPECT_TRUE(CheckKind(*classifiers, "f", ModelKind::kClassifier).ok());
  EXPECT_EQ(
      CheckKind(*classifiers, "f", ModelKind::kLanguageModel),
      absl::InvalidArgumentError("f: max_queue_delay is '5ms'; it must be absent: the model is a language model"));
  const auto language_models = Parse(R"({"max_streams": 64})");
  EXPECT_TRUE(CheckKind(*language_models, "f", ModelKind::kLanguageModel).ok());
  EXPECT_EQ(CheckKind(*language_models, "f", ModelKind::kClassifier),
            absl::InvalidArgumentError("f: max_streams is '64'; it must be absent: the model is a classifier"));
}

}  // namespace longshort::server::serving_options_test
