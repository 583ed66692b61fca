// Rows of a matrix, and their layer normalisation, as kernels take them.
#pragma once

#include <cstdint>

namespace longshort::models::cpu {

// One head's channels of the rows of a matrix: row i begins at data + i * stride.
template <typename Float>
struct HeadRows {
  Float* data = nullptr;
  int64_t stride = 0;
};

// Layer normalisation over a row's `width` numbers, with the biased variance.
struct RowNorm {
  const float* gain = nullptr;  // [width]; null: no norm
  const float* bias = nullptr;
  float epsilon = 0;
};

// Gradients, which are added to.
struct NormGradient {
  float* gain = nullptr;  // null: there is no norm
  float* bias = nullptr;
};

}  // namespace longshort::models::cpu
