// Row-wise parts of a layer: linear maps and layer norms, on tensors with or without gradients.
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "models/ops/products/packed_matrix.h"

namespace longshort::models {

class TensorMove;

// A linear map, y = W x + b.
struct Linear {
  at::Tensor weight;  // [out, in]; undefined if packed
  at::Tensor bias;    // [out], or undefined: none
  std::shared_ptr<const PackedMatrix> packed = nullptr;

  // rows [..., in] -> [..., out], in the rows' type: the weight's type, or float32 with bfloat16 or packed weights. In
  // the second case the bias is float32, too, and is added after the product.
  //   added  of the result's shape and type, added to it; undefined: none
  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& added = {}) const;
  // gelu of the result, by erf.
  at::Tensor Gelu(const at::Tensor& rows) const;

  int64_t outputs() const { return packed != nullptr ? packed->outputs() : weight.size(0); }
  int64_t inputs() const { return packed != nullptr ? packed->inputs() : weight.size(1); }
  // Of one row.
  int64_t multiply_adds() const { return outputs() * inputs(); }
  bool defined() const { return packed != nullptr || weight.defined(); }

  // The same map for serving of products of many rows, in float32: FloatPanels, if the processor has AVX2.
  Linear InPanels() const;
  // The same map for serving: its weight is packed as elements of `type` (Pack), or else float32. It is never plain
  // bfloat16: at::linear would reorder that at every call, or multiply it without vector instructions, far slower than
  // float32.
  Linear Packed(at::ScalarType type) const;
};

// Layer normalisation over the last dimension, with the biased variance. The result has the rows' type.
struct LayerNorm {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& rows) const;

 private:
  // The same of float32 rows on the CPU, without gradients.
  at::Tensor Normalized(const at::Tensor& rows) const;
};

// fc2(gelu(fc1(rows))), GELU by erf, plus `added` as in Linear.
struct FeedForward {
  Linear in, out;

  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& added = {}) const;

  void MoveBy(TensorMove& move);
};

}  // namespace longshort::models
