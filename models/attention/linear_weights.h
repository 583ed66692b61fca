// What a layer does to each row by itself: linear maps and layer norms.
#pragma once

#include "ATen/core/Tensor.h"

namespace longshort {

// A linear map, y = W x + b. Weights are stored [out, in].
struct LinearWeights {
  at::Tensor weight;
  at::Tensor bias;  // undefined: none

  // rows [..., in] float32 -> [..., out] float32. With bfloat16 weights the product is done in bfloat16, the bias added
  // after.
  at::Tensor operator()(const at::Tensor& rows) const;
};

struct NormWeights {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]

  // Layer normalisation over the last dimension, epsilon 1e-5.
  at::Tensor operator()(const at::Tensor& rows) const;
};

}  // namespace longshort
