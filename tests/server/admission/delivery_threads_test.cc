#include "server/admission/delivery_threads.h"

#include <memory>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace longshort {
namespace {

TEST(DeliveryThreadTest, RunsWhatIsPostedInOrderAndAllOfItBeforeItEnds) {
  constexpr int kPieces = 10'000;
  std::vector<int> done;
  {
    DeliveryThread thread;
    for (int i = 0; i < kPieces; ++i) thread.Post([&done, i] { done.push_back(i); });
  }
  ASSERT_EQ(done.size(), kPieces);
  for (int i = 0; i < kPieces; ++i) ASSERT_EQ(done[i], i);
}

TEST(DeliveryThreadTest, WhoPostsDoesNotWaitForWhatWasPostedBefore) {
  std::binary_semaphore go_on(0), second(0);
  DeliveryThread thread;
  thread.Post([&] { go_on.acquire(); });
  thread.Post([&] { second.release(); });
  go_on.release();
  second.acquire();
}

TEST(DeliveryThreadTest, WakesUpAgainAndAgain) {
  std::binary_semaphore ran(0);
  DeliveryThread thread;
  for (int i = 0; i < 1000; ++i) {
    thread.Post([&] { ran.release(); });
    ran.acquire();
  }
}

TEST(DeliveryThreadTest, PiecesOfSeveralThreadsKeepTheOrderOfEach) {
  std::vector<std::pair<int, int>> done;
  {
    DeliveryThread thread;
    std::vector<std::thread> posters;
    for (int poster = 0; poster < 4; ++poster) {
      posters.emplace_back([&thread, &done, poster] {
        for (int i = 0; i < 1000; ++i) thread.Post([&done, poster, i] { done.emplace_back(poster, i); });
      });
    }
    for (std::thread& poster : posters) poster.join();
  }
  ASSERT_EQ(done.size(), 4000);
  std::vector<int> next(4);
  for (const auto& [poster, i] : done) ASSERT_EQ(i, next[poster]++);
}

TEST(DeliveryThreadTest, LetsGoOfAPieceBeforeTheNext) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  bool gone = false;
  {
    DeliveryThread thread;
    thread.Post([held = std::move(held)] {});
    thread.Post([&] { gone = watch.expired(); });
  }
  EXPECT_TRUE(gone);
}

TEST(DeliveryThreadsTest, OneForEachEightCpusAndAtLeastOne) {
  for (const auto& [cpus, threads] : {std::pair<int64_t, size_t>{1, 1}, {2, 1}, {16, 2}, {64, 8}}) {
    DeliveryThreads deliveries(cpus);
    std::set<const DeliveryThread*> used;
    for (int stream = 0; stream < 20; ++stream) used.insert(&deliveries.Next());
    EXPECT_EQ(used.size(), threads) << cpus << " CPUs";
  }
}

}  // namespace
}  // namespace longshort
