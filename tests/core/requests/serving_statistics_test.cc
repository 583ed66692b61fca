#include "core/requests/serving_statistics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace longshort::core::serving_statistics_test {

constexpr int64_t kMillion = 1'000'000;

TEST(ServingStatistics, TheTimesOfAnAnswerAddUpToItsWhole) {
  ServingStatistics statistics;
  const absl::Time now = absl::FromUnixMillis(1'700'000'000'123);
  statistics.CountAnswer({.total = absl::Milliseconds(100),
                          .queue = absl::Milliseconds(20),
                          .run = absl::Milliseconds(50),
                          .output = absl::Milliseconds(10),
                          .items = 3},
                         now);
  EXPECT_EQ(statistics.answers().nanoseconds(), 100 * kMillion);
  EXPECT_EQ(statistics.queue().nanoseconds(), 20 * kMillion);
  EXPECT_EQ(statistics.run().nanoseconds(), 50 * kMillion);
  EXPECT_EQ(statistics.output().nanoseconds(), 10 * kMillion);
  EXPECT_EQ(statistics.input().nanoseconds(), 20 * kMillion) << "what is left";
  EXPECT_EQ(statistics.items(), 3);
  EXPECT_EQ(statistics.last_milliseconds(), 1'700'000'000'123);
  // The item that waited longest was not the one that ran longest.
  statistics.CountAnswer({.total = absl::Milliseconds(100),
                          .queue = absl::Milliseconds(80),
                          .run = absl::Milliseconds(70),
                          .output = absl::ZeroDuration(),
                          .items = 2},
                         now);
  EXPECT_EQ(statistics.queue().nanoseconds(), 50 * kMillion) << "20 and 30";
  EXPECT_EQ(statistics.run().nanoseconds(), 120 * kMillion);
  EXPECT_EQ(statistics.input().nanoseconds(), 20 * kMillion);
  EXPECT_EQ(statistics.input().count(), 2);
}

TEST(ServingStatistics, BatchesAreCountedBySizeUpToTheLargest) {
  ServingStatistics statistics(4);
  statistics.CountBatch(4, absl::Milliseconds(2));
  statistics.CountBatch(4, absl::Milliseconds(3));
  statistics.CountBatch(5, absl::Milliseconds(7));
  EXPECT_EQ(statistics.executions(), 3);
  EXPECT_EQ(statistics.batches().size(), 5);
  EXPECT_EQ(statistics.batches()[4].count(), 2);
  EXPECT_EQ(statistics.batches()[4].nanoseconds(), 5 * kMillion);
}

TEST(ServingStatistics, NothingIsLostBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 10'000;
  ServingStatistics statistics(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        statistics.CountBatch(1, absl::Nanoseconds(1));
        statistics.CountAnswer({.total = absl::Nanoseconds(2), .queue = {}, .run = {}, .output = {}, .items = 1}, {});
        statistics.CountFailure(absl::Nanoseconds(3), {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(statistics.executions(), kThreads * kCalls);
  EXPECT_EQ(statistics.items(), kThreads * kCalls);
  EXPECT_EQ(statistics.failures().nanoseconds(), 3 * kThreads * kCalls);
}

}  // namespace longshort::core::serving_statistics_test
