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

enum class RowActivation { kGelu, kRelu };

// rows[i] = activation(rows[i] + bias), in place. GELU is the exact one, x/2 (1 + erf(x / sqrt 2)).
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

}  // namespace longshort::models::cuda
