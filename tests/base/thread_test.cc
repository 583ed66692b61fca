#include "base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

namespace longshort::thread_test {

TEST(ThreadTest, RunsItsBodyAndIsJoinedWithTheObject) {
  std::atomic<bool> ran = false;
  {
    Thread thread;
    ASSERT_TRUE(thread.Start("the thread of a test", [&] { ran = true; }).ok());
  }
  EXPECT_TRUE(ran);
}

// An address space without room for a stack: the system refuses the thread.
void StartWithoutMemory() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_AS, &none);
  Thread thread;
  const absl::Status status = thread.Start("the thread of a test", [] {});
  const bool expected = absl::IsResourceExhausted(status) && !thread.started() &&
                        status.message().find("cannot start the thread of a test: ") == 0;
  std::_Exit(expected ? 0 : 1);
}

TEST(ThreadDeathTest, AThreadThatCannotStartIsAStatus) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(StartWithoutMemory(), ::testing::ExitedWithCode(0), "");
}

class TaskThreadTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(thread_.Start("the thread of a test").ok()); }

  TaskThread thread_;
};

TEST_F(TaskThreadTest, RunsTasksInOrderAndAllOfThemBeforeItEnds) {
  constexpr int kTasks = 10'000;
  std::vector<int> done;
  for (int i = 0; i < kTasks; ++i) thread_.Post([&done, i] { done.push_back(i); });
  thread_.Stop();
  ASSERT_EQ(done.size(), kTasks);
  for (int i = 0; i < kTasks; ++i) ASSERT_EQ(done[i], i);
}

TEST_F(TaskThreadTest, PostDoesNotWaitForEarlierTasks) {
  std::binary_semaphore go_on(0), second(0);
  thread_.Post([&] { go_on.acquire(); });
  thread_.Post([&] { second.release(); });
  go_on.release();
  second.acquire();
}

TEST_F(TaskThreadTest, WakesUpAgainAndAgain) {
  std::binary_semaphore ran(0);
  for (int i = 0; i < 1000; ++i) {
    thread_.Post([&] { ran.release(); });
    ran.acquire();
  }
}

TEST_F(TaskThreadTest, TasksOfSeveralThreadsKeepTheOrderOfEach) {
  std::vector<std::pair<int, int>> done;
  std::vector<std::thread> posters;
  for (int poster = 0; poster < 4; ++poster) {
    posters.emplace_back([this, &done, poster] {
      for (int i = 0; i < 1000; ++i) thread_.Post([&done, poster, i] { done.emplace_back(poster, i); });
    });
  }
  for (std::thread& poster : posters) poster.join();
  thread_.Stop();
  ASSERT_EQ(done.size(), 4000);
  std::vector<int> next(4);
  for (const auto& [poster, i] : done) ASSERT_EQ(i, next[poster]++);
}

TEST_F(TaskThreadTest, ATaskIsDestroyedBeforeTheNextBegins) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  bool gone = false;
  thread_.Post([held = std::move(held)] {});
  thread_.Post([&] { gone = watch.expired(); });
  thread_.Stop();
  EXPECT_TRUE(gone);
}

TEST_F(TaskThreadTest, TasksThatHaveNotBegunCanBeTaken) {
  std::binary_semaphore begun(0), go_on(0);
  int ran = 0;
  thread_.Post([&] {
    begun.release();
    go_on.acquire();
  });
  thread_.Post([&] { ++ran; });
  begun.acquire();
  EXPECT_EQ(thread_.TakeWaiting().size(), 1U);
  go_on.release();
  thread_.Stop();
  EXPECT_EQ(ran, 0);
}

TEST_F(TaskThreadTest, ATaskThatComesAfterTheEndIsDestroyed) {
  thread_.Stop();
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  thread_.Post([held = std::move(held)] {});
  EXPECT_TRUE(watch.expired());
}

TEST(TaskThread, TasksWaitForTheStart) {
  std::binary_semaphore ran(0);
  TaskThread thread;
  thread.Post([&] { ran.release(); });
  EXPECT_FALSE(ran.try_acquire());
  ASSERT_TRUE(thread.Start("the thread of a test").ok());
  ran.acquire();
}

TEST(TaskThread, RunsItsPeriodicFunctionBetweenTasks) {
  std::counting_semaphore<> runs(0);
  std::binary_semaphore task(0);
  TaskThread thread;
  ASSERT_TRUE(
      thread.Start("the thread of a test", {.interval = absl::Milliseconds(1), .run = [&] { runs.release(); }}).ok());
  for (int i = 0; i < 3; ++i) runs.acquire();
  thread.Post([&] { task.release(); });
  task.acquire();
  runs.acquire();
}

}  // namespace longshort::thread_test
