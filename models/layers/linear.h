// What a layer does to each row by itself: linear maps and layer norms, over tensors that may remember their gradients.
#pragma once

#include "ATen/core/Tensor.h"

namespace longshort {

// A linear map, y = W x + b.
struct Linear {
  at::Tensor weight;       // [out, in]; undefined if packed
  at::Tensor bias;         // [out], or undefined: none
  at::Tensor packed = {};  // the weight as Packed() leaves it, or undefined

  // rows [..., in] -> [..., out], of the weight's type. With bfloat16 weights rows and result are float32: the product
  // is done in bfloat16, the bias added after.
  at::Tensor operator()(const at::Tensor& rows) const;

  // The same map for serving, its bfloat16 weight in the order in which the library's product reads it; at::linear
  // would bring it there at every call, which for few rows costs more than the product. Unchanged with another type of
  // weight, and on a processor for which the library has no such product.
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
