#include "core/generation/helper_threads.h"

#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::helper_threads_test {

using ::testing::Each;

TEST(HelperThreads, CallOnceForEachNumberAndReturnWhenAllHaveReturned) {
  for (const int64_t threads : {0, 1, 3}) {
    const auto helpers = *HelperThreads::Create(threads);
    for (int64_t round = 0; round < 300; ++round) {
      std::vector<int> calls(round % 40);  // not atomic: the calls must happen before the return
      helpers->ForEach(static_cast<int64_t>(calls.size()), [&](int64_t i) { ++calls[i]; });
      ASSERT_THAT(calls, Each(1));
    }
  }
}

// Each thread waits in its first call until the others have come.
TEST(HelperThreads, ShareTheCalls) {
  const auto helpers = *HelperThreads::Create(2);
  Mutex mutex;
  ConditionVariable came;
  std::set<std::thread::id> threads;
  helpers->ForEach(100, [&](int64_t) {
    const MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
    came.NotifyAll();
    came.Wait(mutex, [&] { return threads.size() == 3; });
  });
  EXPECT_EQ(threads.size(), 3u);
}

}  // namespace longshort::core::helper_threads_test
