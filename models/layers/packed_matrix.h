// Matrices of 16-bit numbers, in the order in which the library's products read them: half the bytes of float32, which
// are most of what a product of few rows costs.
#pragma once

#include <memory>

#include "ATen/core/Tensor.h"

namespace longshort {

// Shared by a model's replicas. Thread: any.
class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;

  // rows [..., rows, in] -> [..., rows, out], both float32, summed in float32. Throws what LibTorch throws.
  virtual at::Tensor Multiply(const at::Tensor& rows) const = 0;
};

// Of `weight` [out, in]:
// - bfloat16: for products of bfloat16 numbers (AVX-512 with bfloat16, AMX), rows and result rounded to them; or, on a
//   processor that has none, for float32 rows and the weight in float16, which only rounds numbers below 2^-17;
// - float32: for float32 rows and the weight in float16, if that is the same matrix, as weights stored in float16 are.
// nullptr if neither can be had. Throws what LibTorch throws.
std::shared_ptr<const PackedMatrix> Pack(const at::Tensor& weight);

}  // namespace longshort
