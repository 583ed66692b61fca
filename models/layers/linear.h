// What a layer does to each row by itself: linear maps and layer norms, over tensors that may remember their gradients.
#pragma once

#include <memory>

#include "ATen/core/Tensor.h"
#include "models/layers/packed_matrix.h"

namespace longshort {

// A linear map, y = W x + b.
struct Linear {
  at::Tensor weight;  // [out, in]; undefined if packed
  at::Tensor bias;    // [out], or undefined: none
  std::shared_ptr<const PackedMatrix> packed = nullptr;

  // rows [..., in] -> [..., out], of the rows' type: that of the weight, or float32 with bfloat16 or packed weights.
  // Then the bias is float32, too, and is added after the product.
  at::Tensor operator()(const at::Tensor& rows) const;

  // The same map for serving: its weight as Pack() has it, or else float32. Never bfloat16, which at::linear would
  // bring into another order at every call, or multiply without the processor's help, far slower than float32.
  Linear Packed() const;
};

// Layer normalisation over the last dimension, with the biased variance. The result has the rows' type.
struct LayerNorm {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& rows) const;
};

}  // namespace longshort
