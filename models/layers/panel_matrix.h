// Matrices in panels of kPanelOutputs outputs: bfloat16 numbers for oneDNN's kernels of blocks, and int8.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/kernels/int8_products.h"
#include "models/layers/packed_matrix.h"

namespace longshort::models {

// Rows are rounded to bfloat16. REQUIRES: AVX-512. Fast with HasBFloat16Tiles only.
class BFloat16Panels final : public PackedMatrix {
 public:
  explicit BFloat16Panels(const at::Tensor& weight);
  at::Tensor Multiply(const at::Tensor& rows, const at::Tensor& bias, bool gelu) const override;

 private:
  std::vector<cpu::BFloat16> pairs_;  // [panels][padded inputs / 2][kPanelOutputs][2]
};

// Weights in int8, with a scale for each group of inputs of an output.
class Int8Panels final : public PackedMatrix {
 public:
  // `by_tiles`: in products of several rows, rows and weights are rounded to bfloat16 for BFloat16Panels' kernels.
  // Otherwise all is float32, and the processor may be any.
  Int8Panels(const at::Tensor& weight, bool by_tiles);
  at::Tensor Multiply(const at::Tensor& rows, const at::Tensor& bias, bool gelu) const override;

 private:
  cpu::Int8Panel Panel(int64_t panel, int64_t first_input, int64_t count) const;
  at::Tensor MultiplyInFloat32(const at::Tensor& rows, const at::Tensor& bias, bool gelu) const;
  // For MultiplyInFloat32: matrix [rows, padded inputs]; writes `result` [rows, outputs].
  void MultiplyFewRows(const at::Tensor& matrix, const at::Tensor& bias, bool gelu, const at::Tensor& result) const;
  void MultiplyWidened(const at::Tensor& matrix, const at::Tensor& bias, bool gelu, const at::Tensor& result) const;

  const bool by_tiles_;
  std::vector<int8_t> numbers_;  // [panels][padded inputs / 4][kPanelOutputs][4]
  std::vector<float> scales_;    // [panels][groups][kPanelOutputs]
};

}  // namespace longshort::models
