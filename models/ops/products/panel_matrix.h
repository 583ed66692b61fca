// Matrices in panels of outputs: bfloat16 numbers for oneDNN's kernels of blocks, int8, and float32.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/ops/products/packed_matrix.h"
#include "models/ops/products/product_kernels.h"

namespace longshort::models {

class PanelMatrix : public PackedMatrix {
 public:
  using PackedMatrix::PackedMatrix;

 protected:
  int64_t padded_inputs() const;
  // Writes a panel's weights as float32, [padded inputs][kPanelOutputs].
  virtual void Widen(int64_t panel, const cpu::HeadRows<float>& weights) const = 0;
  // LibTorch's product of float32 rows and widened weights, of some panels at a time. For many rows.
  at::Tensor MultiplyWidened(const at::Tensor& rows, const ProductEnd& end) const;
};

// Rows are rounded to bfloat16.
class BFloat16Panels final : public PanelMatrix {
 public:
  //   weight  [outputs, inputs] bfloat16
  //   widens  many rows stay float32, and are multiplied with widened weights
  // REQUIRES: AVX-512 with bfloat16.
  BFloat16Panels(const at::Tensor& weight, bool widens);
  at::Tensor Multiply(const at::Tensor& rows, const ProductEnd& end) const override;

 private:
  const cpu::BFloat16* Pairs(int64_t panel) const;
  void Widen(int64_t panel, const cpu::HeadRows<float>& weights) const override;

  const bool widens_;
  const at::Tensor pairs_;  // [panels, padded inputs / 2, kPanelOutputs, 2]
};

// Weights in int8, with a scale for each group of inputs of an output.
class Int8Panels final : public PanelMatrix {
 public:
  // What becomes of rows.
  enum class Rows {
    kFloat,  // they stay as they are, on any processor
    // Several rows are rounded to bfloat16, and weights, too, for BFloat16Panels' kernels. Fewer stay as they are.
    kBFloat16,
    kInt8,  // they are rounded to int8, like weights. REQUIRES: cpu::HasInt8DotProducts().
  };
  Int8Panels(const at::Tensor& weight, Rows rows);
  at::Tensor Multiply(const at::Tensor& rows, const ProductEnd& end) const override;

 private:
  int64_t groups() const;
  cpu::Int8Panel Panel(int64_t panel, int64_t first_input, int64_t count) const;
  void Widen(int64_t panel, const cpu::HeadRows<float>& weights) const override;
  at::Tensor MultiplyFewRows(const at::Tensor& rows, const ProductEnd& end) const;
  at::Tensor MultiplyInt8Rows(const at::Tensor& rows, const ProductEnd& end) const;

  const Rows rows_;
  std::vector<int8_t> numbers_;       // [panels][padded inputs / 4][kPanelOutputs][4]
  std::vector<float> scales_;         // [panels][groups][kPanelOutputs]
  std::vector<int32_t> corrections_;  // [panels][groups][kPanelOutputs], of MultiplyInt8Rows; else empty
};

// Float32 weights in panels of kFloatPanelOutputs outputs. Faster than LibTorch's products of the rows of an image,
// which copy the weights at each call. The bits of a row do not depend on the other rows.
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
