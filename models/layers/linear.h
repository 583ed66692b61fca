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

  // rows [..., in] -> [..., out], of the weight's type. With bfloat16 weights rows and result are float32: the product
  // is done in bfloat16, the bias added after.
  at::Tensor operator()(const at::Tensor& rows) const;

  // The same map for serving: its weight in 16 bits and packed where that can be done without loss (packed_matrix.h);
  // at::linear would bring a bfloat16 weight into its order at every call, which for few rows costs more than the
  // product. A bfloat16 weight that cannot be packed becomes float32: the library multiplies bfloat16 numbers ten times
  // as slowly on a processor that has no instructions for it.
  Linear Packed() const;
};

// Layer normalisation over the last dimension, with the biased variance.
struct LayerNorm {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& rows) const;
};

}  // namespace longshort
