// The row-wise operations of the language model except matrix products: embedding, norms with residual sums, bias and
// activation, and the selection of rows for logits. Rows are [rows, width] with a stride: the residual branch in
// float32, products in float32 or bfloat16; sums are float32. Pointers are device pointers. A row's bits do not depend
// on the other rows.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"

namespace longshort::models::cuda {

// Rows of activations, `stride` elements apart.
struct Rows {
  void* data;
  int64_t stride;
};
// The consecutive rows of an item (a document, an image).
struct ItemRows {
  int64_t first_row, rows;
};
// The rows of each item: given one by one in `each`, or `rows` rows per item, with `step` rows between first rows.
struct ItemRanges {
  const ItemRows* each = nullptr;  // [items]; null: all equal
  int64_t step = 0, rows = 0;
};
constexpr ItemRows RangeOf(const ItemRanges& ranges, int64_t item) {
  return ranges.each != nullptr ? ranges.each[item] : ItemRows{item * ranges.step, ranges.rows};
}

// The weights of a LayerNorm.
struct NormWeights {
  const float* gain;  // [width]
  const float* bias;  // [width]
};

// output[i] = scale * table[tokens[i]].
struct EmbedRows {
  const float* table;  // [vocabulary, width]
  const int64_t* tokens;
  int64_t count;
  int width;
  float scale;  // sqrt(width)
  Rows output;  // float32
  Rows copy;    // the same in bfloat16; null: none
};
KernelCall EmbedRowsCall(const EmbedRows& arguments);

// output[i] = LayerNorm(x), with x = input[i] + addend[i] + addend_bias. The model's residual branch carries normalised
// rows, so both z = norm2(x + Attn(x)) and the next layer's x = norm1(z + FF(z)) have this form.
struct NormRows {
  ElementType addend_type;
  Rows input;                // float32
  Rows addend;               // null: none
  const float* addend_bias;  // [width]; null: none
  NormWeights norm;
  float epsilon;
  int64_t count;
  int width;
  Rows output;  // float32; may be the input
  Rows copy;    // the same in bfloat16; null: none
};
KernelCall NormRowsCall(const NormRows& arguments);

// GELU is the exact one, x/2 (1 + erf(x / sqrt 2)).
enum class RowActivation { kGelu, kRelu, kNone };

// rows[i] = activation(rows[i] + bias), in place.
struct ActivateRows {
  ElementType row;
  RowActivation activation;
  Rows rows;
  const float* bias;  // [width]; null: none
  int64_t count;
  int width;
};
KernelCall ActivateRowsCall(const ActivateRows& arguments);

// output[i] = input[indices[i]] + addend[indices[i]] + addend_bias: the last layer's sum, for the rows whose logits are
// requested.
struct GatherRows {
  ElementType row;           // of addend and output
  Rows input;                // float32
  Rows addend;               // null: none
  const float* addend_bias;  // [width]; null: none
  const int64_t* indices;    // < 0: not written
  int64_t count;
  int width;
  Rows output;
};
KernelCall GatherRowsCall(const GatherRows& arguments);

// The common part of DocumentAttention and WindowAttention2d: bidirectional attention of the rows of an item (a
// document, an image) to a window of its rows and to a few shared vectors, with one softmax over both.
//   scores  s_j = scale * q . k_j (+ bias_j);  output  sum_j softmax(s)_j v_j
//
// A thread block has up to kTileRows rows of one item, and one head. Keys are folded in blocks of 64, shared vectors
// first. Each block of keys has its own softmax, which is merged into the running one as in causal attention. Tiles and
// blocks of keys depend on the item only, and so do a row's bits.
struct RowAttention {
  ElementType element;  // of all inputs and outputs, and of products; sums are float32
  int heads;
  int head_width;  // at most kMaxHeadWidth
  float scale;     // 1/sqrt(head_width), or 1 if queries are already scaled

  Rows queries, keys, values;       // [rows, heads * head_width]
  int shared;                       // m >= 0
  Rows shared_keys, shared_values;  // [items * m, heads * head_width]
  Rows output;                      // [rows, heads * head_width]
};

// Sums of the rows of items (such as documents), divided by one length for all items:
//   output_i = scale * sum of the rows of item i
// Rows are split for parallelism. Each kMeanSplitRows rows of an item, from its first row on, are summed, and a second
// kernel sums the splits in order. An item's bits do not depend on the other items.
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
