#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace longshort::mutex_test {

// clang checks all of this, too: see base/mutex.h.
class Counter final {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  // Adds one of two with the mutex released in between.
  void AddTwice() {
    MutexLock lock(mutex_);
    ++count_;
    changed_.NotifyAll();
    lock.Unlock();
    lock.Lock();
    ++count_;
    changed_.NotifyAll();
  }
  int WaitFor(int count) {
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ >= count; });
    return count_;
  }
  bool WaitFor(int count, absl::Duration time) {
    const MutexLock lock(mutex_);
    const auto reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ >= count; };
    return changed_.WaitFor(mutex_, time, reached);
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

constexpr int kThreads = 4;
constexpr int kTimes = 10'000;

TEST(MutexTest, OneThreadAtATimeHoldsIt) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kTimes; ++k) counter.AddTwice();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.WaitFor(0), 2 * kThreads * kTimes);
}

TEST(ConditionVariableTest, AWaitReleasesTheMutexAndHoldsItAfterwards) {
  Counter counter;
  std::thread adds([&] {
    for (int k = 0; k < kTimes; ++k) counter.Add();
  });
  EXPECT_GE(counter.WaitFor(kTimes), kTimes);
  adds.join();
  counter.Add();  // the wait has released it again at its end
  EXPECT_EQ(counter.WaitFor(0), kTimes + 1);
}

TEST(ConditionVariableTest, AWaitEndsWithItsTime) {
  Counter counter;
  EXPECT_FALSE(counter.WaitFor(1, absl::ZeroDuration()));
  EXPECT_FALSE(counter.WaitFor(1, absl::Milliseconds(1)));
  counter.Add();
  EXPECT_TRUE(counter.WaitFor(1, absl::ZeroDuration()));
}

TEST(ConditionVariableTest, AnInfiniteTimeIsNoLimit) {
  Counter counter;
  std::thread adds([&] { counter.Add(); });
  EXPECT_TRUE(counter.WaitFor(1, absl::InfiniteDuration()));
  adds.join();
}

}  // namespace longshort::mutex_test
