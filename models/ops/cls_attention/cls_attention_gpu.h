// Attention of one row per item (a document's CLS, an image's global token) to itself and to the item's rows:
//   keys [own key; row keys], values [own value; row values];  output  softmax(scale * keys . query) values
// The row keys and values may be the same rows, which are then read once.
// With only one query per item, the keys are split for parallelism. Each 64 rows of an item, from its first row on,
// have their own softmax, and a second kernel merges these in order, the item's own key first. An item's bits do not
// depend on the other items.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

struct ClsAttention {
  ElementType element;  // of all inputs and outputs; sums are float32
  int heads;
  int head_width;  // at most kMaxHeadWidth
  float scale;     // 1/sqrt(head_width), or 1 if queries are already scaled
  int items;
  int max_splits;  // SplitsOf(most rows of an item)
  ItemRanges ranges;

  Rows queries, keys, values;  // [items, heads * head_width]: of the items' own rows
  Rows row_keys, row_values;   // [rows, heads * head_width]
  Rows output;                 // [items, heads * head_width]

  float* partial_outputs;  // [items, heads, max_splits, padded head width], workspace
  float* partial_sums;     // [items, heads, max_splits, 2]: largest score and sum of each split, workspace
};
constexpr int64_t SplitsOf(int64_t rows) { return (rows + kPageRows - 1) / kPageRows; }

// Launch in this order: the first writes the partial results, the second the output.
KernelCall AttendToRowsCall(const ClsAttention& arguments);
KernelCall MergeRowsCall(const ClsAttention& arguments);

}  // namespace longshort::models::cuda
