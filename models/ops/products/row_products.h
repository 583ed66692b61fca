// Products of few rows with a matrix, on a GPU: with the norm before them and the sum, bias or activation behind them
// in one kernel. Pointers are device pointers.
//
// A row's bits do not depend on the other rows or on their number. So in all steps of up to kFewRows rows, a row of the
// language model has the bits of its history, decoded alone or read as part of a prompt. Larger steps have LibTorch's
// products, which are faster there: a step rounds its rows in one of both ways.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// The rows that one load of the matrix serves.
constexpr int64_t kFewRows = 16;

// The widest rows that are normalised: a thread block has all of them in shared memory, of which chips have 99 KiB.
constexpr int kMaxNormedWidth = 2048;

// Whether rows of such a width can be factors: they consist of pieces of 16 bytes.
constexpr bool FitsRowProducts(int64_t width) { return width % 8 == 0; }

// output[i] = activation(matrix x + bias) + addend[i], with sums in float32. x is row i of `rows`. Without them, it is
//   inputs[i] = norm(sums[indices[i]]),
// which is also written, and then rounded to bfloat16.
// REQUIRES: FitsRowProducts(width); strides of float32 rows are multiples of 4, those of bfloat16 rows of 8, and all
// rows begin at multiples of 16 bytes.
struct RowProducts {
  Rows matrix = {};  // bfloat16 [outputs, width]
  int outputs = 0, width = 0;
  int64_t count = 0;

  Rows rows = {};                    // bfloat16; null: computed as above, and width <= kMaxNormedWidth
  Rows sums = {};                    // float32
  const int64_t* indices = nullptr;  // [count]; null: row i is number i
  NormWeights norm = {};             // null: none
  float epsilon = 0;
  Rows inputs = {};  // float32; null: not written

  const float* bias = nullptr;  // [outputs]; null: none
  RowActivation activation = RowActivation::kNone;
  Rows addend = {};  // float32; null: none
  ElementType result = ElementType::kFloat;
  Rows output = {};  // [count, outputs], of type `result`
};
KernelCall RowProductsCall(const RowProducts& arguments);

}  // namespace longshort::models::cuda
