#include "models/device/micro_batches.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "ATen/Parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::micro_batches_test {

using Batch = std::vector<MicroBatch>;
using ::testing::ElementsAre;

constexpr MicroBatchWork kHundred = {.min = 25, .max = 100};

TEST(CutBatch, WhatFitsIsOneMicroBatchForOneThread) {
  EXPECT_EQ(CutBatch({30, 30, 40}, kHundred, 1), (Batch{{0, 3, 100}}));
  EXPECT_EQ(CutBatch({1}, kHundred, 4), (Batch{{0, 1, 1}}));
}

TEST(CutBatch, WhatDoesNotFitIsCutToEqualParts) {
  EXPECT_EQ(CutBatch({40, 40, 40, 40}, kHundred, 1), (Batch{{0, 2, 80}, {2, 2, 80}}));
  EXPECT_EQ(CutBatch({40, 40, 40, 40, 40, 40}, kHundred, 1), (Batch{{0, 2, 80}, {2, 2, 80}, {4, 2, 80}}));
}

TEST(CutBatch, AnItemIsNeverCut) {
  EXPECT_EQ(CutBatch({1000}, kHundred, 2), (Batch{{0, 1, 1000}}));
  EXPECT_EQ(CutBatch({500, 500, 500}, kHundred, 1), (Batch{{0, 1, 500}, {1, 1, 500}, {2, 1, 500}}));
  EXPECT_EQ(CutBatch({10, 500, 10}, kHundred, 1), (Batch{{0, 1, 10}, {1, 1, 500}, {2, 1, 10}}));
}

TEST(CutBatch, EachThreadGetsItsOwnWhereThatIsWorthIt) {
  EXPECT_EQ(CutBatch({25, 25}, kHundred, 2), (Batch{{0, 1, 25}, {1, 1, 25}}));
  EXPECT_EQ(CutBatch({25, 25}, kHundred, 8), (Batch{{0, 1, 25}, {1, 1, 25}}));
  EXPECT_EQ(CutBatch({20, 20}, kHundred, 2), (Batch{{0, 2, 40}}));
}

TEST(CutBatch, EveryItemIsInOneMicroBatchWhateverTheirWork) {
  for (int64_t items = 1; items < 40; ++items) {
    for (const int threads : {1, 2, 3, 16}) {
      std::vector<int64_t> work(items);
      for (int64_t i = 0; i < items; ++i) work[i] = 1 + i * i * 7919 % 230;
      int64_t next = 0;
      for (const MicroBatch& batch : CutBatch(work, kHundred, threads)) {
        ASSERT_EQ(batch.first_item, next);
        ASSERT_GE(batch.items, 1);
        next += batch.items;
        const auto begin = work.begin() + batch.first_item;
        EXPECT_EQ(batch.work, std::accumulate(begin, begin + batch.items, int64_t{0}));
        EXPECT_LT(batch.work, kHundred.max + 230) << "more than its part by less than an item";
      }
      EXPECT_EQ(next, items);
    }
  }
}

// How many micro-batches are shared, and how many run in parallel.
std::pair<std::vector<int64_t>, std::vector<int64_t>> Plan(const std::vector<int64_t>& work, int threads) {
  Batch batch;
  for (const int64_t one : work) batch.push_back({static_cast<int64_t>(batch.size()), 1, one});
  const MicroBatchPlan plan = PlanMicroBatches(batch, threads);
  const auto work_of = [](const Batch& part) {
    std::vector<int64_t> all;
    for (const MicroBatch& one : part) all.push_back(one.work);
    return all;
  };
  return {work_of(plan.shared), work_of(plan.parallel)};
}

TEST(PlanMicroBatches, ThreadsShareOneAndRunManySideBySide) {
  using Work = std::vector<int64_t>;
  EXPECT_EQ(Plan({5}, 2), std::pair(Work{5}, Work{}));
  EXPECT_EQ(Plan({5, 5}, 2), std::pair(Work{}, Work{5, 5}));
  EXPECT_EQ(Plan({5, 5, 5}, 2), (std::pair(Work{5}, Work{5, 5})));
  EXPECT_EQ(Plan({5, 5, 5, 5}, 2), (std::pair(Work{}, Work{5, 5, 5, 5})));
  EXPECT_EQ(Plan({5, 5, 5}, 4), (std::pair(Work{}, Work{5, 5, 5})));
}

TEST(PlanMicroBatches, OneThatWouldKeepTheOthersWaitingIsShared) {
  using Work = std::vector<int64_t>;
  EXPECT_EQ(Plan({1, 20, 1}, 2), (std::pair(Work{20}, Work{1, 1})));
  EXPECT_EQ(Plan({4, 1, 2, 5, 3}, 2), (std::pair(Work{}, Work{5, 4, 3, 2, 1}))) << "the largest first";
}

TEST(PlanMicroBatches, OneThreadRunsThemInTheirOrder) {
  using Work = std::vector<int64_t>;
  EXPECT_EQ(Plan({1, 20, 1}, 1), (std::pair(Work{}, Work{1, 20, 1})));
}

class Runner : public ::testing::TestWithParam<int> {};

TEST_P(Runner, RunsEveryItemOnceAndAddsUp) {
  MicroBatchRunner runner(GetParam());
  for (int64_t items = 1; items < 20; ++items) {
    const std::vector<int64_t> work(items, 60);
    std::vector<std::atomic<int>> runs(items);
    const int64_t sum = runner.Run(work, kHundred, [&](const MicroBatch& batch) {
      for (int64_t i = 0; i < batch.items; ++i) ++runs[batch.first_item + i];
      return 10 * batch.items;
    });
    EXPECT_EQ(sum, 10 * items);
    EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const auto& count) { return count == 1; }));
  }
}

TEST_P(Runner, AFailureIsThrownOnceNothingRunsAnyMoreAndTheNextBatchRuns) {
  MicroBatchRunner runner(GetParam());
  const std::vector<int64_t> work(8, 100);
  std::atomic<int> running = 0;
  const auto run = [&](int64_t failing) {
    return runner.Run(work, kHundred, [&](const MicroBatch& batch) {
      ++running;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --running;
      if (batch.first_item == failing) throw std::runtime_error("no luck");
      return batch.items;
    });
  };
  for (int64_t failing = 0; failing < 8; ++failing) {
    EXPECT_THROW(run(failing), std::runtime_error);
    EXPECT_EQ(running, 0);
    EXPECT_EQ(run(-1), 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Runner, ::testing::Values(1, 2, 3));

TEST(MicroBatchRunner, TwoRunSideBySideEachOnAThreadOfItsOwn) {
  MicroBatchRunner runner(2);
  std::atomic<int> begun = 0, with_the_other = 0, alone_in_the_library = 0;
  // The first batch runs on all threads, because the speed of one thread is unknown.
  runner.Run({100, 100}, kHundred, [&](const MicroBatch&) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    ++begun;
    while (begun < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    with_the_other += begun == 2 ? 1 : 0;
    alone_in_the_library += at::in_parallel_region() ? 1 : 0;
    return 0;
  });
  EXPECT_EQ(with_the_other, 2);
  EXPECT_EQ(alone_in_the_library, 2) << "what a network would share is done by its own thread";
}

TEST(MicroBatchRunner, OneIsSharedByAllThreads) {
  MicroBatchRunner runner(2);
  int threads = 0;
  runner.Run({100}, kHundred, [&](const MicroBatch&) {
    threads = at::in_parallel_region() ? 1 : at::get_num_threads();
    return 0;
  });
  EXPECT_EQ(threads, 2);
}

}  // namespace longshort::models::micro_batches_test
