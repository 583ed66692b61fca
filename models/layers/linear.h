// What a layer does to each row by itself: linear maps and layer norms, over tensors that may remember their gradients.
#pragma once

#include "ATen/core/Tensor.h"

namespace longshort {

// A linear map, y = W x + b.
struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out], or undefined: none

  // rows [..., in] -> [..., out], of the weight's type. With bfloat16 weights rows and result are float32: the product
  // is done in bfloat16, the bias added after.
  at::Tensor operator()(const at::Tensor& rows) const;
};

// Layer normalisation over the last dimension, with the biased variance.
struct LayerNorm {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& rows) const;
};

}  // namespace longshort
