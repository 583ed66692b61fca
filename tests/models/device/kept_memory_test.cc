#include <sys/types.h>

#include <fstream>
#include <memory>
#include <vector>

#include "ATen/Functions.h"
#include "gtest/gtest.h"
#include "models/device/library.h"

extern "C" int mallctl(const char*, void*, size_t*, void*, size_t) __attribute__((weak));

namespace longshort::models::kept_memory_test {

// Resident memory of this process, in MiB.
int64_t Resident() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4096 / (1 << 20);
}

constexpr int64_t kMany = 256;  // MiB

// Allocates and frees this much, as a batch of large tensors does.
void RunBatch() {
  std::vector<at::Tensor> tensors;
  for (int64_t i = 0; i < kMany / 16; ++i) tensors.push_back(at::ones({16 << 18}, at::kFloat));
}

class KeptMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (mallctl == nullptr) GTEST_SKIP() << "without jemalloc nothing is kept";
    RunBatch();
    start_ = Resident();
  }

  // Whether the process still holds the memory that RunBatch freed.
  bool IsKept() const { return Resident() > start_ + kMany / 2; }

  int64_t start_ = 0;
};

TEST_F(KeptMemoryTest, IsKeptUntilTheModelRests) {
  KeptMemory model;
  for (int batches = 0; batches < 2; ++batches) {
    model.Use();
    RunBatch();
    EXPECT_TRUE(IsKept());
    model.Rest();
    EXPECT_FALSE(IsKept());
  }
}

TEST_F(KeptMemoryTest, IsKeptWhileAnotherModelWorks) {
  KeptMemory model, other;
  other.Use();
  model.Use();
  RunBatch();
  model.Rest();
  EXPECT_TRUE(IsKept());
  other.Rest();
  EXPECT_FALSE(IsKept());
}

TEST_F(KeptMemoryTest, IsGivenBackWhenAModelEndsThoughAnotherWorks) {
  KeptMemory other;
  other.Use();
  {
    KeptMemory model;
    model.Use();
    RunBatch();
    EXPECT_TRUE(IsKept());
  }
  EXPECT_FALSE(IsKept());
}

TEST_F(KeptMemoryTest, AModelThatEndsAtWorkStops) {
  KeptMemory other;
  std::make_unique<KeptMemory>()->Use();
  other.Use();
  RunBatch();
  other.Rest();
  EXPECT_FALSE(IsKept());
}

TEST_F(KeptMemoryTest, WithoutModelsTheAllocatorDoesAsBefore) {
  const auto time_of_new_arenas = [] {
    ssize_t milliseconds = 0;
    size_t bytes = sizeof(milliseconds);
    EXPECT_EQ(mallctl("arenas.dirty_decay_ms", &milliseconds, &bytes, nullptr, 0), 0);
    return milliseconds;
  };
  const ssize_t before = time_of_new_arenas();
  {
    const KeptMemory model, other;
    EXPECT_EQ(time_of_new_arenas(), -1);
  }
  EXPECT_EQ(time_of_new_arenas(), before);
  RunBatch();
  EXPECT_FALSE(IsKept());
}

}  // namespace longshort::models::kept_memory_test
