// Weights of a linear map in the memory order of the processor's products.
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"

namespace longshort::models {

// What follows a product, in this order.
struct ProductEnd {
  at::Tensor bias = {};   // [outputs] float32, added; undefined: none
  bool gelu = false;      // by erf
  at::Tensor added = {};  // of the result's shape, float32, added; undefined: none
};

// Reading the weights dominates a product with few rows. Shared by a model's replicas. Thread-safe.
class PackedMatrix {
 public:
  PackedMatrix(int64_t outputs, int64_t inputs) : outputs_(outputs), inputs_(inputs) {}
  virtual ~PackedMatrix() = default;
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }

  // rows [..., inputs] -> [..., outputs], both float32, summed in float32. Throws what LibTorch throws.
  virtual at::Tensor Multiply(const at::Tensor& rows, const ProductEnd& end) const = 0;

 private:
  const int64_t outputs_, inputs_;
};

// [..., inputs] -> [rows, inputs], with contiguous channels.
at::Tensor AsMatrix(const at::Tensor& rows);

// Packs `weight` [out, in], float32 (for kBFloat16 also bfloat16), as elements of `type`:
// - kFloat: no rounding. For float32 rows and the weight in float16, if the conversion is exact (the weight was stored
//   in float16).
// - kBFloat16: with AMX or AVX-512's bfloat16 instructions, rows are rounded to bfloat16, too; without AMX on Intel's
//   processors, only a few rows at a time. On other processors, for float32 rows and the weight in float16, which
//   rounds only numbers below 2^-17.
// - kChar: int8 numbers, times a float32 scale for each 64 inputs of an output. In products of several rows with AMX,
//   rows and scaled weights are rounded to bfloat16; else they stay float32.
// - kQInt8: as kChar, and rows are rounded to int8, too, with a scale for each 64 inputs of a row. For processors with
//   AVX-512's dot products of bytes.
// Returns nullptr if none of these applies. Throws what LibTorch throws.
std::shared_ptr<const PackedMatrix> Pack(const at::Tensor& weight, at::ScalarType type);

// Whether the processor has tiles (AMX) for products of bfloat16 numbers, several times as fast as float32's. oneDNN's
// ONEDNN_MAX_CPU_ISA masks them.
bool HasBFloat16Tiles();

}  // namespace longshort::models
