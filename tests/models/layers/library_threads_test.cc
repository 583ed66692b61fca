#include "models/layers/library_threads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "models/layers/parallel_for.h"

namespace longshort {
namespace {

int64_t ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

void UseAllThreads() {
  at::parallel_for(0, 64, /*grain_size=*/1, [](int64_t, int64_t) {});
}

TEST(LibraryThreads, WhoLoadsGetsNoTeamAndKeepsItsChoice) {
  std::thread([] {
    UseThreads(3);
    const int64_t before = ThreadsOfThisProcess();
    {
      const OneThread one_thread;
      UseAllThreads();
      EXPECT_EQ(ThreadsOfThisProcess(), before);
    }
    UseAllThreads();
    EXPECT_EQ(ThreadsOfThisProcess(), before + 2) << "without it there is a team, which stays";
  }).join();
}

TEST(LibraryThreads, TheLibrarysOwnNumberIsNotWhatSomebodyChose) {
  const int own = OwnThreads();
  UseThreads(own + 3);
  EXPECT_EQ(OwnThreads(), own);
  UseThreads(own);
}

TEST(LibraryThreads, ATeamThatIsGivenBackIsGoneUntilThereIsWorkAgain) {
  std::thread([] {
    GiveBackThreads();  // there is none yet
    UseThreads(3);
    const int64_t before = ThreadsOfThisProcess();
    for (int round = 0; round < 3; ++round) {
      UseAllThreads();
      EXPECT_EQ(ThreadsOfThisProcess(), before + 2);
      GiveBackThreads();
      EXPECT_EQ(ThreadsOfThisProcess(), before);
    }
  }).join();
}

}  // namespace
}  // namespace longshort
