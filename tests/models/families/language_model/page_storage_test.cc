#include "models/families/language_model/page_storage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace longshort::models::page_storage_test {

constexpr PageLayout kLayout = {.layers = 2, .heads = 4, .head_width = 64};  // a page of 64 KiB
constexpr int64_t kPages = 400;                                              // 25 MiB
constexpr int64_t kSlackBytes = 5 << 20;                                     // for the rest of the process

// The process's resident memory.
int64_t ResidentBytes() {
  int64_t all = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void FillPages(PageStorage<float>& storage) {
  std::fill_n(storage.PageMemory(0), storage.pages() * storage.page_bytes(), 'x');
}

TEST(PageStorage, TakesMemoryOnlyWhereItIsWritten) {
  PageStorage<float> storage(kLayout);
  const int64_t before = ResidentBytes();
  ASSERT_TRUE(storage.Allocate(kPages).ok());
  EXPECT_LT(ResidentBytes(), before + kSlackBytes);
  FillPages(storage);
  EXPECT_GT(ResidentBytes(), before + kPages * storage.page_bytes() - kSlackBytes);
}

// An allocator would keep the second storage's memory, because the first raised its threshold.
TEST(PageStorage, GivesItsMemoryBackWhateverWasFreedBefore) {
  const int64_t before = ResidentBytes();
  auto storage = std::make_unique<PageStorage<float>>(kLayout);
  ASSERT_TRUE(storage->Allocate(kPages).ok());
  FillPages(*storage);
  storage = std::make_unique<PageStorage<float>>(kLayout);
  ASSERT_TRUE(storage->Allocate(kPages).ok());
  FillPages(*storage);
  const auto behind = std::make_unique<char[]>(100'000);
  storage.reset();
  EXPECT_LT(ResidentBytes(), before + kSlackBytes);
}

TEST(PageStorage, IsZeroAgainWhenItIsAllocatedAgain) {
  PageStorage<float> storage(kLayout);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(storage.Allocate(kPages).ok());
    const char* const memory = storage.PageMemory(0);
    EXPECT_TRUE(std::all_of(memory, memory + kPages * storage.page_bytes(), [](char byte) { return byte == 0; }));
    FillPages(storage);
  }
}

TEST(PageStorage, RefusesWhatNoMachineHas) {
  PageStorage<float> storage(kLayout);
  for (const int64_t pages : {int64_t{1} << 40, int64_t{1} << 62}) {
    const absl::Status status = storage.Allocate(pages);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(storage.pages(), 0);
  }
}

template <typename Element>
class PageRowsTest : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, cpu::BFloat16>;
TYPED_TEST_SUITE(PageRowsTest, ElementTypes);

// A page that leaves the server may also have another sequence's rows.
TYPED_TEST(PageRowsTest, NothingIsLeftOfTheOtherRows) {
  for (const int64_t head_width : {5, 16, 32, 48}) {
    const PageLayout layout = {.layers = 2, .heads = 3, .head_width = head_width};
    PageStorage<TypeParam> storage(layout);
    ASSERT_TRUE(storage.Allocate(2).ok());
    const std::vector<float> row(layout.heads * head_width, 1.5F);
    const PageRows rows = {.first = 3, .end = 7};
    for (int64_t layer = 0; layer < layout.layers; ++layer) {
      for (int64_t i = 0; i < cpu::kPageRows; ++i) {
        storage.WriteRow(0, layer, i, row.data(), row.data());
        if (i >= rows.first && i < rows.end) storage.WriteRow(1, layer, i, row.data(), row.data());
      }
    }
    layout.ClearOtherRows(rows, reinterpret_cast<TypeParam*>(storage.PageMemory(0)));
    EXPECT_EQ(0, std::memcmp(storage.PageMemory(0), storage.PageMemory(1), storage.page_bytes())) << head_width;
  }
}

}  // namespace longshort::models::page_storage_test
