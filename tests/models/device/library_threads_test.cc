#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

#include "ATen/Parallel.h"
#include "models/device/library.h"

namespace longshort::models::library_threads_test {

int64_t ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// The number of threads. A joined thread may still be counted for a moment, so this waits until the count is stable.
int64_t LastingThreadsOfThisProcess() {
  int64_t threads = ThreadsOfThisProcess();
  for (int looks = 0; looks < 20; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const int64_t now = ThreadsOfThisProcess();
    if (std::exchange(threads, now) != now) looks = 0;
  }
  return threads;
}

void UseAllThreads() {
  at::parallel_for(0, 64, /*grain_size=*/1, [](int64_t, int64_t) {});
}

TEST(LibraryThreads, WhoLoadsGetsNoTeamAndKeepsItsChoice) {
  std::thread([] {
    UseThreads(3);
    const int64_t before = LastingThreadsOfThisProcess();
    {
      const OneThread one_thread;
      UseAllThreads();
      EXPECT_EQ(ThreadsOfThisProcess(), before);
    }
    UseAllThreads();
    EXPECT_EQ(ThreadsOfThisProcess(), before + 2) << "without it there is a team, which stays";
  }).join();
}

TEST(LibraryThreads, TheLibrarysOwnNumberIsNotAChosenOne) {
  const int own = OwnThreads();
  UseThreads(own + 3);
  EXPECT_EQ(OwnThreads(), own);
  UseThreads(own);
}

TEST(LibraryThreads, ATeamThatIsGivenBackIsGoneUntilThereIsWorkAgain) {
  std::thread([] {
    ReleaseThreads();  // there is none yet
    UseThreads(3);
    const int64_t before = LastingThreadsOfThisProcess();
    for (int round = 0; round < 3; ++round) {
      UseAllThreads();
      EXPECT_EQ(ThreadsOfThisProcess(), before + 2);
      ReleaseThreads();
      EXPECT_EQ(LastingThreadsOfThisProcess(), before);
    }
  }).join();
}

// Without the check, the library would end the process.
TEST(LibraryThreadsDeathTest, WithoutAThreadOfTheSystemTheWorkIsDoneAnyway) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto work_without_threads = [] {
    const bool is_root = geteuid() == 0;  // root has no limit
    const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (is_root && setuid(65534) != 0)) _exit(2);
    UseThreads(3);
    UseAllThreads();
    _exit(ThreadsOfThisProcess() == 1 ? 0 : 3);
  };
  EXPECT_EXIT(work_without_threads(), testing::ExitedWithCode(0), "");
}

}  // namespace longshort::models::library_threads_test
