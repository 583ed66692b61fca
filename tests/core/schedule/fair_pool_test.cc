#include "core/schedule/fair_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "tests/base/status_matchers.h"

namespace longshort::core::fair_pool_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A pool of one thread that is busy until Go.
class FairPoolTest : public ::testing::Test {
 protected:
  explicit FairPoolTest(const WaitingLimits& limits = {.max_queued = 100,
                                                       .max_queued_cost = absl::Seconds(10),
                                                       .max_queued_per_client = 3,
                                                       .max_queued_cost_per_client = absl::Seconds(2)})
      : pool_(*FairPool::Create(1, limits)) {
    pool_->Submit({.client = "first"}, [this] {
      begun_.count_down();
      go_.wait();
      return absl::ZeroDuration();
    });
    begun_.wait();
  }
  ~FairPoolTest() override { Go(); }

  FairPool::Task Named(const std::string& name) {
    return [this, name] {
      const MutexLock lock(mutex_);
      ran_.push_back(name);
      return absl::Seconds(1);
    };
  }
  // Runs all tasks. Returns their names in the order in which they ran.
  std::vector<std::string> Go() {
    if (!go_.try_wait()) go_.count_down();
    pool_.reset();
    const MutexLock lock(mutex_);
    return ran_;
  }

  std::latch begun_{1};
  std::latch go_{1};
  Mutex mutex_;
  std::vector<std::string> ran_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FairPool> pool_;
};

TEST_F(FairPoolTest, ClientsTakeTurns) {
  for (const char* name : {"a1", "a2", "a3"}) pool_->Submit({.client = "a", .cost = absl::Seconds(1)}, Named(name));
  pool_->Submit({.client = "b", .cost = absl::Seconds(1)}, Named("b1"));
  EXPECT_THAT(Go(), ElementsAre("a1", "b1", "a2", "a3"));
}

TEST_F(FairPoolTest, WhatIsDueFirstGoesFirstAmongTheTasksOfAClient) {
  const absl::Time now = absl::UnixEpoch();
  pool_->Submit({.client = "a", .due = now + absl::Seconds(100)}, Named("long"));
  pool_->Submit({.client = "a", .due = now + absl::Seconds(1)}, Named("short"));
  EXPECT_THAT(Go(), ElementsAre("short", "long"));
}

TEST_F(FairPoolTest, RefusesAClientThatFillsTheQueueAndNobodyElse) {
  const auto submit = [&](const std::string& client, absl::Duration cost) {
    return pool_->TrySubmit({.client = client, .cost = cost}, Named(client));
  };
  for (int i = 0; i < 3; ++i) EXPECT_THAT(submit("greedy", absl::Milliseconds(1)), IsOk());
  const absl::Status refused = submit("greedy", absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_TRUE(GetRefusal(refused).has_value());
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the limit is 3"));
  EXPECT_THAT(submit("large", absl::Seconds(2)), IsOk());
  EXPECT_TRUE(absl::IsResourceExhausted(submit("large", absl::Seconds(1)))) << "2 s of one client may wait";
  EXPECT_THAT(submit("modest", absl::Milliseconds(1)), IsOk());
  EXPECT_EQ(pool_->size(), 6);
}

TEST_F(FairPoolTest, WhatIsSubmittedWithoutLimitsRuns) {
  for (int i = 0; i < 5; ++i) pool_->Submit({.client = "a"}, Named("a"));
  EXPECT_EQ(Go().size(), 5u);
}

TEST(FairPool, AClientLeavesAThreadToTheOthers) {
  std::latch two_run(2), go(1), last_ran(1), other_ran(1);
  const auto pool = *FairPool::Create(3, {}, 2);
  Mutex mutex;
  int64_t running = 0, most = 0;
  for (int i = 0; i < 6; ++i) {
    pool->Submit({.client = "greedy"}, [&, i] {
      {
        const MutexLock lock(mutex);
        most = std::max(most, ++running);
      }
      if (i < 2) two_run.count_down();
      go.wait();
      {
        const MutexLock lock(mutex);
        --running;
      }
      if (i == 5) last_ran.count_down();
      return absl::Seconds(1);
    });
  }
  pool->Submit({.client = "other"}, [&] {
    other_ran.count_down();
    return absl::ZeroDuration();
  });
  two_run.wait();
  other_ran.wait();
  go.count_down();
  last_ran.wait();  // those that waited for their client run while the pool lives
  const MutexLock lock(mutex);
  EXPECT_EQ(most, 2);
}

// Waits until a thread of this process sleeps. Returns how often it has gone to sleep so far.
int64_t SleepsOf(pid_t thread) {
  while (true) {
    std::ifstream status(absl::StrCat("/proc/self/task/", thread, "/status"));
    bool sleeps = false;
    int64_t count = -1;
    for (std::string line; std::getline(status, line);) {
      if (absl::StartsWith(line, "State:")) sleeps = absl::StrContains(line, "S (sleeping)");
      absl::string_view number = line;
      if (absl::ConsumePrefix(&number, "voluntary_ctxt_switches:") && !absl::SimpleAtoi(number, &count)) count = -1;
    }
    if (sleeps) return count;
    std::this_thread::yield();
  }
}

// Two threads, of which a client may have one:
//   the first thread    runs greedy's first task; the others of greedy wait for it
//   the second thread   sleeps meanwhile: it could run none of them
TEST(FairPool, AThreadWakesOnlyForATaskThatMayRun) {
  std::latch greedy_runs(1), other_ran(1), go(1);
  const auto pool = *FairPool::Create(2, {}, 1);
  pool->Submit({.client = "greedy"}, [&] {
    greedy_runs.count_down();
    go.wait();
    return absl::ZeroDuration();
  });
  greedy_runs.wait();
  pid_t second = 0;
  pool->Submit({.client = "other"}, [&] {
    second = gettid();
    other_ran.count_down();
    return absl::ZeroDuration();
  });
  other_ran.wait();
  const int64_t before = SleepsOf(second);
  for (int i = 0; i < 20; ++i) pool->Submit({.client = "greedy"}, [] { return absl::ZeroDuration(); });
  EXPECT_EQ(SleepsOf(second), before);
  go.count_down();
}

}  // namespace longshort::core::fair_pool_test
