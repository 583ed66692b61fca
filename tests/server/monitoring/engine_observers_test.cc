#include "server/monitoring/engine_observers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/fakes/fake_clock.h"

namespace longshort::server::engine_observers_test {

using ::testing::HasSubstr;
using ::testing::Not;

Logger& Log() {
  static Logger log(LogFormat::kText, LogLevel::kError);
  return log;
}

TEST(EngineObservers, AnEngineReportsThroughItsObserver) {
  ServerMetrics metrics({0.1, 1});
  const auto observer = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  observer->OnQueued(absl::Milliseconds(1));
  observer->OnPrefilled(absl::Milliseconds(2), 7);
  observer->OnStep(absl::Milliseconds(3), 9);
  observer->OnFirstToken(absl::Milliseconds(4));
  observer->OnNextToken(absl::Milliseconds(5));
  observer->OnNextToken(absl::Milliseconds(5));
  observer->OnState({.active_streams = 2, .cache_bytes_used = 30, .cache_bytes_idle = 20, .cache_bytes_free = 50});
  const std::string text = metrics.Serialize();
  for (const char* line : {
           R"(longshort_queue_duration_seconds_count{model="m",version="1"} 1)",
           R"(longshort_prefill_duration_seconds_count{model="m",version="1"} 1)",
           R"(longshort_step_duration_seconds_sum{model="m",version="1"} 0.003)",
           R"(longshort_time_to_first_token_seconds_count{model="m",version="1"} 1)",
           R"(longshort_inter_token_duration_seconds_count{model="m",version="1"} 2)",
           R"(longshort_batch_rows_sum{model="m",version="1"} 9)",
           R"(longshort_prompt_tokens_total{model="m",version="1"} 7)",
           R"(longshort_generated_tokens_total{model="m",version="1"} 3)",
           R"(longshort_workers{model="m",version="1"} 2)",
           R"(longshort_streams_active{model="m",version="1"} 2)",
           R"(longshort_cache_use_ratio{model="m",version="1"} 0.3)",
           R"(longshort_cache_bytes{model="m",state="used",version="1"} 30)",
           R"(longshort_cache_bytes{model="m",state="idle",version="1"} 20)",
           R"(longshort_cache_bytes{model="m",state="free",version="1"} 50)",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(EngineObservers, RunsOfAModelAreCountedInItsStatistics) {
  ServerMetrics metrics({0.1, 1});
  const auto of_engine = std::make_shared<core::ServingStatistics>();
  const auto engine = ObserveEngine(metrics, Log(), "m", 1, of_engine, 2);
  engine->OnStep(absl::Milliseconds(3), 9);
  EXPECT_EQ(of_engine->executions(), 1);
  const auto of_classifier = std::make_shared<core::ServingStatistics>(8);
  const auto classifier = ObserveClassifier(metrics, Log(), "c", 1, of_classifier, 2);
  classifier->OnBatch({.items = 3, .tokens = 0, .multiply_adds = 0, .run = absl::Milliseconds(2)});
  EXPECT_EQ(of_classifier->executions(), 1);
  EXPECT_EQ(of_classifier->batches()[3].nanoseconds(), 2'000'000);
}

TEST(EngineObservers, FailuresAreCountedOfEveryKindOfEngine) {
  ServerMetrics metrics({0.1, 1});
  const auto engine = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  const auto classifier = ObserveClassifier(metrics, Log(), "c", 1, std::make_shared<core::ServingStatistics>(), 2);
  const absl::Status failure = absl::InternalError("as the test wants");
  const auto fail = [&](auto& observer) {
    for (int step = 0; step < 3; ++step) observer.OnFailure(failure);
    for (const absl::Status& rebuilt : {failure, failure, absl::OkStatus()}) observer.OnWorkerRebuilt(rebuilt);
  };
  fail(*engine);
  fail(*classifier);
  const std::string text = metrics.Serialize();
  for (const char* line : {
           R"(longshort_step_failures_total{model="m",version="1"} 3)",
           R"(longshort_step_failures_total{model="c",version="1"} 3)",
           R"(longshort_worker_rebuild_failures_total{model="m",version="1"} 2)",
           R"(longshort_worker_rebuild_failures_total{model="c",version="1"} 2)",
           R"(longshort_worker_rebuilds_total{model="m",version="1"} 1)",
           R"(longshort_worker_rebuilds_total{model="c",version="1"} 1)",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(EngineObservers, StoresOfAModelAddUpTheirSessions) {
  ServerMetrics metrics({0.1, 1});
  const auto first = ObserveSessions(metrics, "m");
  auto second = ObserveSessions(metrics, "m");
  first->OnSessions(3, 300);
  second->OnSessions(2, 50);
  first->OnSessions(4, 310);
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_sessions{model="m"} 6)"));
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_session_tokens{model="m"} 360)"));
  second.reset();  // its sessions have ended with it
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_sessions{model="m"} 4)"));
}

TEST(EngineObservers, EnginesOfAModelAddUpWhatTheirCachesCount) {
  ServerMetrics metrics({0.1, 1});
  const auto first = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  auto second = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  core::LanguageModelEngineState state;
  state.queued_requests = 3;
  state.cache.counters = {.hits = 1,
                          .misses = 2,
                          .reused_tokens = 64,
                          .evicted_parked = 3,
                          .evicted_ends = 4,
                          .evicted_window = 5,
                          .evicted_segment = 6};
  first->OnState(state);
  second->OnState(state);
  state.cache.counters.hits = 10;
  second->OnState(state);
  second.reset();  // nothing waits for it any more; what it counted stays
  const std::string text = metrics.Serialize();
  for (const char* line : {
           R"(longshort_queued_requests{model="m",version="1"} 3)",
           R"(longshort_queue_length{model="m",version="1"} 3)",
           R"(longshort_cache_hits_total{model="m",version="1"} 11)",
           R"(longshort_cache_misses_total{model="m",version="1"} 4)",
           R"(longshort_reused_tokens_total{model="m",version="1"} 128)",
           R"(longshort_evictions_total{kind="parked",model="m",version="1"} 6)",
           R"(longshort_evictions_total{kind="end",model="m",version="1"} 8)",
           R"(longshort_evictions_total{kind="page",model="m",version="1"} 22)",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(EngineObservers, ClassifiersOfAModelAddUpWaitingItems) {
  ServerMetrics metrics({0.1, 1});
  const auto first = ObserveClassifier(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  auto second = ObserveClassifier(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_queued_items{model="m",version="1"} 0)"));
  first->OnState({.waiting_items = 5});
  second->OnState({.waiting_items = 7});
  first->OnState({.waiting_items = 2});
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_queued_items{model="m",version="1"} 9)"));
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_queue_length{model="m",version="1"} 9)"));
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_cache_use_ratio{model="m",version="1"} 0)")) << "it has none";
  second.reset();
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_queued_items{model="m",version="1"} 2)"));
}

TEST(EngineObservers, EnginesOfAModelAddUpTheirPagesAndNotTheSizeOfOne) {
  ServerMetrics metrics({0.1, 1});
  auto first = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  auto second = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  core::LanguageModelEngineState state;
  state.cache_bytes_free = 5000;
  state.cache_page_bytes = {.window = 1000, .segment = 2000, .open_chunk = 300};
  state.cache.in_use = {.window = 1, .segment = 2, .open_chunk = 3};
  state.cache.idle = {.window = 10, .segment = 20, .open_chunk = 0};
  state.cache.spare = {.window = 4, .segment = 5, .open_chunk = 0};
  state.cache.free = {.window = 7, .segment = 8, .open_chunk = 9};
  state.cache.ends = 6;
  first->OnState(state);
  second->OnState(state);
  const std::string text = metrics.Serialize();
  for (const char* line : {
           R"(longshort_cache_pages{kind="window",model="m",state="used",version="1"} 2)",
           R"(longshort_cache_pages{kind="segment",model="m",state="kept",version="1"} 30)",
           R"(longshort_cache_pages{kind="window",model="m",state="spare",version="1"} 8)",
           R"(longshort_cache_pages{kind="open_chunk",model="m",state="free",version="1"} 18)",
           R"(longshort_cache_page_bytes{kind="window",model="m",version="1"} 1000)",
           R"(longshort_cache_page_bytes{kind="segment",model="m",version="1"} 2000)",
           R"(longshort_cache_page_bytes{kind="open_chunk",model="m",version="1"} 300)",
           R"(longshort_cache_ends{model="m",version="1"} 12)",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  second.reset();
  EXPECT_THAT(metrics.Serialize(),
              HasSubstr(R"(longshort_cache_page_bytes{kind="window",model="m",version="1"} 1000)"));
}

TEST(EngineObservers, VersionsOfAModelAreDistinguished) {
  ServerMetrics metrics({0.1, 1});
  const auto old_one = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  const auto new_one = ObserveEngine(metrics, Log(), "m", 2, std::make_shared<core::ServingStatistics>(), 2);
  old_one->OnFirstToken(absl::Milliseconds(4));
  new_one->OnFirstToken(absl::Milliseconds(4));
  new_one->OnNextToken(absl::Milliseconds(4));
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr(R"(longshort_generated_tokens_total{model="m",version="1"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(longshort_generated_tokens_total{model="m",version="2"} 2)"));
}

TEST(EngineObservers, SeriesOfAVersionLeaveAWhileAfterItsLastEngine) {
  core::FakeClock clock;
  ServerMetrics metrics({0.1, 1}, clock);
  auto engine = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  auto loaded_anew = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  auto classifier = ObserveClassifier(metrics, Log(), "c", 1, std::make_shared<core::ServingStatistics>(), 2);
  const auto other = ObserveClassifier(metrics, Log(), "c", 2, std::make_shared<core::ServingStatistics>(), 2);
  classifier->OnEnded(absl::InvalidArgumentError("as the test wants"));
  other->OnEnded(absl::InvalidArgumentError("as the test wants"));
  engine->OnNextToken(absl::Milliseconds(4));
  engine.reset();
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_generated_tokens_total{model="m",version="1"} 1)"));
  loaded_anew.reset();
  classifier.reset();
  clock.Advance(kKeptAfterUnload);
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_generated_tokens_total{model="m",version="1"} 1)"));
  clock.Advance(absl::Seconds(1));
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_generated_tokens_total{model="m",version="1"} 1)"));
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, Not(HasSubstr(R"(version="1")")));
  EXPECT_THAT(text, HasSubstr(R"(longshort_items_total{code="INVALID_ARGUMENT",model="c",version="2"} 1)"));
  // Loaded again, it begins at 0.
  engine = ObserveEngine(metrics, Log(), "m", 1, std::make_shared<core::ServingStatistics>(), 2);
  EXPECT_THAT(metrics.Serialize(), HasSubstr(R"(longshort_generated_tokens_total{model="m",version="1"} 0)"));
}

}  // namespace longshort::server::engine_observers_test
