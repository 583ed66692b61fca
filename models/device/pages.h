// The layout of keys and values in a GPU's cache pages, and element types. Plain C++17, because nvcc compiles it, too.
//
// A page holds, for each layer and head, the keys of 64 rows and then their values. Each row is padded with zeros to a
// width that the kernels are compiled for:
//   page  [layers][heads][2: keys, values][kPageRows][padded head width]
// So a page is one block of the 64-key grid, a head's keys of a block are contiguous, and a row is read in vectors of
// 16 bytes.
#pragma once

#include <cstdint>

namespace longshort::models::cuda {

enum class ElementType { kFloat, kBFloat16 };
constexpr int64_t ElementBytes(ElementType type) { return type == ElementType::kFloat ? 4 : 2; }

// Rows of a page, and keys of a block.
constexpr int kPageRows = 64;
// The maximum number of queries of a thread block.
constexpr int kTileRows = 64;
// The widest head that the kernels support.
constexpr int64_t kMaxHeadWidth = 128;

// REQUIRES: 0 < head_width <= kMaxHeadWidth.
constexpr int64_t PaddedHeadWidth(int64_t head_width) { return head_width <= 32 ? 32 : head_width <= 64 ? 64 : 128; }

// Elements of one layer's part of a page.
constexpr int64_t LayerElements(int64_t heads, int64_t head_width) {
  return heads * 2 * kPageRows * PaddedHeadWidth(head_width);
}

// StepPlan's page tables, on the device.
struct PageTable {
  const int64_t* first_pages;  // [slices]
  const int64_t* first_ids;    // [slices + 1]
  const int64_t* ids;          // page first_pages[s] + i of the grid is ids[first_ids[s] + i]; < 0: the zero page
};

// Pages of one kind, for one layer.
struct KeyPages {
  PageTable table;
  const void* pages;      // the layer's part of page 0
  const void* zero_page;  // the layer's part of the zero page
};

}  // namespace longshort::models::cuda
