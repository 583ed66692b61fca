#include "base/freed_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <vector>

namespace longshort::freed_memory_test {

int64_t ResidentBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// In a program that allocates as the server does.
TEST(FreedMemory, GoesBackToTheSystem) {
  constexpr int64_t kBlocks = 64 * 1024, kBlockBytes = 1024, kAll = kBlocks * kBlockBytes;
  std::vector<std::unique_ptr<char[]>> blocks(kBlocks);
  for (auto& block : blocks) block = std::make_unique<char[]>(kBlockBytes);  // zeroes it, so that it is there
  blocks.clear();
  const int64_t kept = ResidentBytes();
  ASSERT_GT(kept, kAll / 2) << "the allocator has given it back itself: this shows nothing";
  ReturnFreedMemory();
  EXPECT_LT(ResidentBytes(), kept - kAll / 2);
}

}  // namespace longshort::freed_memory_test
