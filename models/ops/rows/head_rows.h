// Rows of a matrix, their elements and their layer normalisation, as kernels for CPUs take them.
#pragma once

#include <cstdint>

namespace longshort::models::cpu {

// One head's channels of the rows of a matrix: row i begins at data + i * stride.
template <typename Float>
struct HeadRows {
  Float* data = nullptr;
  int64_t stride = 0;
};

// A value stored as the upper half of a float32.
struct BFloat16 {
  uint16_t bits = 0;
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

namespace longshort::models {

// Queries that see the same rows of their document. Ends are exclusive; row 0 is the document's first.
struct WindowSegment {
  int64_t first_query = 0;
  int64_t end_query = 0;
  int64_t first_key = 0;
  int64_t end_key = 0;
};

}  // namespace longshort::models
