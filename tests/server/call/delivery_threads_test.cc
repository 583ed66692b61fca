#include "server/call/delivery_threads.h"

#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace longshort::server::delivery_threads_test {

TEST(DeliveryThreadsTest, OneForEachEightCpusAndAtLeastOne) {
  for (const auto& [cpus, threads] : {std::pair<int64_t, size_t>{1, 1}, {2, 1}, {16, 2}, {64, 8}}) {
    DeliveryThreads deliveries(cpus);
    std::set<const DeliveryThread*> used;
    for (int stream = 0; stream < 20; ++stream) used.insert(&deliveries.Next());
    EXPECT_EQ(used.size(), threads) << cpus << " CPUs";
  }
}

}  // namespace longshort::server::delivery_threads_test
