#include "core/generation/worker_states.h"

#include <memory>

#include "core/requests/language_model_jobs.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/recording_listeners.h"

namespace longshort::core::worker_states_test {

LanguageModelEngineState WithCounters(const CacheCounters& counters) {
  LanguageModelEngineState state;
  state.cache.counters = counters;
  return state;
}

class WorkerStatesTest : public testing::Test {
 protected:
  RequestQueue queue_{{}, models::CpuWorkers(2)};
  RecordingObserver observer_;
  WorkerStates states_{2, queue_, observer_};
};

TEST_F(WorkerStatesTest, ReportsRunningAndWaitingJobsOfAllWorkers) {
  ScoringRequest request;
  request.tokens = {1, 2};
  ASSERT_TRUE(
      queue_.Push(std::make_unique<ScoringJob>(request, std::make_shared<RecordingScoringListener>(), 10, observer_))
          .ok());
  states_.ReportQueued();
  EXPECT_EQ(observer_.state.queued_requests, 1) << "though no worker has reported anything";
  states_.Set(0, {.active_streams = 2});
  states_.Set(1, {.active_streams = 3});
  for (const LanguageModelEngineState& state : {observer_.state, states_.Sum()}) {
    EXPECT_EQ(state.active_streams, 5);
    EXPECT_EQ(state.queued_requests, 1);
  }
}

TEST_F(WorkerStatesTest, AddsUpPagesAndNotTheSizeOfOne) {
  LanguageModelEngineState state;
  state.cache_page_bytes = {.window = 10, .segment = 20, .open_chunk = 30};
  state.cache.idle = {.window = 3, .segment = 4, .open_chunk = 5};
  state.cache.spare = {.window = 1, .segment = 2, .open_chunk = 0};
  state.cache.ends = 6;
  for (const size_t worker : {0, 1}) states_.Set(worker, state);
  const LanguageModelEngineState sum = states_.Sum();
  EXPECT_EQ(sum.cache_page_bytes.segment, 20);
  EXPECT_EQ(sum.cache.idle.window, 6);
  EXPECT_EQ(sum.cache.spare.segment, 4);
  EXPECT_EQ(sum.cache.ends, 12);
}

TEST_F(WorkerStatesTest, KeepsWhatWasCountedWhenAWorkerGetsAnotherCache) {
  states_.Set(0, WithCounters({.hits = 3, .misses = 2, .reused_tokens = 192, .evicted_ends = 1}));
  states_.Set(1, WithCounters({.hits = 5}));
  states_.Set(0, {});  // its model is gone
  states_.Set(0, {});  // and there is another
  states_.Set(0, WithCounters({.hits = 1, .reused_tokens = 64}));
  const CacheCounters counters = observer_.state.cache.counters;
  EXPECT_EQ(counters.hits, 9);
  EXPECT_EQ(counters.misses, 2);
  EXPECT_EQ(counters.reused_tokens, 256);
  EXPECT_EQ(counters.evicted_ends, 1);
}

}  // namespace longshort::core::worker_states_test
