// The kernels of attention of one row per item (a document's CLS, an image's global token) to itself and to the item's
// rows:
//   keys [own key; row keys], values [own value; row values];  output  softmax(scale * keys . query) values
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/cpu_kernels.h"
#include "models/ops/rows/rows.h"

// For CPUs: one head of one document, for training, with the gradient.
namespace longshort::models::cpu {

// One head: the row sees its own key and value, and the document's rows.
struct ClsHead {
  int64_t head_width = 0;  // a multiple of kLanes
  int64_t rows = 0;
  const float* query = nullptr;  // [head_width], scaled
  const float *own_key = nullptr, *own_value = nullptr;
  HeadRows<const float> keys, values;
};
// All are written.
struct ClsGradient {
  const float* weights = nullptr;   // from the forward pass
  const float* attended = nullptr;  // [head_width]
  float *query = nullptr, *own_key = nullptr, *own_value = nullptr;
  HeadRows<float> keys, values;
};
// The number of weights that the forward pass keeps: that of the own key, those of the rows, and padding.
inline int64_t ClsWeights(int64_t rows) { return PaddedHeadWidth(1 + rows); }

//   weights   [ClsWeights(rows)], written for the gradient
//   attended  [head_width], written
void AttendFromCls(const ClsHead& head, float* weights, float* attended, InstructionSet set = BestInstructionSet());

//   scratch   [ClsWeights(rows)]
void DifferentiateCls(const ClsHead& head, const ClsGradient& gradient, float* scratch,
                      InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu

// For GPUs: a batch of items. The row keys and values may be the same rows, which are then read once.
//
// With only one query per item, the keys are split for parallelism. Each 64 rows of an item, from its first row on,
// have their own softmax, and a second kernel merges these in order, the item's own key first. An item's bits do not
// depend on the other items.
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
