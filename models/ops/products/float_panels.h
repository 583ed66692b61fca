// Matrices in panels of float32 weights, for products of many rows.
#pragma once

#include "ATen/core/Tensor.h"
#include "models/ops/products/packed_matrix.h"

namespace longshort::models {

// Faster than LibTorch's products of the rows of an image, which copy the weights at each call. The bits of a row do
// not depend on the other rows.
class FloatPanels final : public PackedMatrix {
 public:
  // weight [outputs, inputs] float32
  explicit FloatPanels(const at::Tensor& weight);

  // REQUIRES: not both `gelu` and `added`.
  at::Tensor Multiply(const at::Tensor& rows, const ProductEnd& end) const override;

 private:
  const at::Tensor panels_;  // [panels, inputs, kFloatPanelOutputs], padded with 0
};

}  // namespace longshort::models
