// Sums of the rows of items (such as documents), divided by one length for all items:
//   output_i = scale * sum of the rows of item i
// Rows are split for parallelism. Each kMeanSplitRows rows of an item, from its first row on, are summed, and a second
// kernel sums the splits in order. An item's bits do not depend on the other items.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

constexpr int kMeanSplitRows = 128;
constexpr int64_t MeanSplitsOf(int64_t rows) { return (rows + kMeanSplitRows - 1) / kMeanSplitRows; }

struct MeanOfRows {
  ElementType element;  // of all inputs and outputs; sums are float32
  int width;
  float scale;  // 1 / length
  int items;
  int max_splits;  // MeanSplitsOf(most rows of an item)
  ItemRanges ranges;

  Rows rows;    // [rows, width]
  Rows output;  // [items, width]

  float* partial_sums;  // [items, max_splits, width], workspace
};

// Launch in this order: the first writes the partial sums, the second the output.
KernelCall SumSplitsCall(const MeanOfRows& arguments);
KernelCall MergeSumsCall(const MeanOfRows& arguments);

}  // namespace longshort::models::cuda
