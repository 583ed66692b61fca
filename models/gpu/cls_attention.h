// Attention of one row of each item (a document's CLS, an image's global token) to itself and to what the item's rows
// have become, which are keys and values at once:
//   keys [own key; rows], values [own value; rows];  output  softmax(scale * keys . query) values
// A row for each item, so rows are split: each 64 of an item from its first on have a softmax of their own, and a
// second kernel merges them in order, the own key first. An item's bits do not depend on the others.
#pragma once

#include <cstdint>

#include "models/gpu/kernel_call.h"
#include "models/gpu/pages.h"
#include "models/gpu/rows.h"

namespace longshort::models::cuda {

struct ClsAttention {
  ElementType element;  // of all that is read and written; sums are float32
  int heads;
  int head_width;  // at most kMaxHeadWidth
  float scale;     // 1/sqrt(head_width), where queries are not scaled
  int items;
  int max_splits;  // SplitsOf(most rows of an item)
  ItemRanges ranges;

  Rows queries, keys, values;  // [items, heads * head_width]: the items' own
  Rows rows;                   // [rows, heads * head_width]
  Rows output;                 // [items, heads * head_width]

  float* partial_outputs;  // [items, heads, max_splits, padded head width], workspace
  float* partial_sums;     // [items, heads, max_splits, 2]: largest score and sum of each split, workspace
};
constexpr int64_t SplitsOf(int64_t rows) { return (rows + kPageRows - 1) / kPageRows; }

// To be launched one after the other. The first writes the partial results, the second the output.
KernelCall AttendToRowsCall(const ClsAttention& arguments);
KernelCall MergeRowsCall(const ClsAttention& arguments);

}  // namespace longshort::models::cuda
