// The layers that the image classifiers are made of, over tensors that may remember their gradients.
#pragma once

#include "ATen/core/Tensor.h"

namespace longshort {

// y = W x + b over the last dimension: rows [..., in] -> [..., out].
struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]

  at::Tensor operator()(const at::Tensor& rows) const;
};

// Layer normalisation over the last dimension, with the biased variance.
struct LayerNorm {
  at::Tensor gain;  // [d]
  at::Tensor bias;  // [d]
  double epsilon = 1e-5;

  at::Tensor operator()(const at::Tensor& rows) const;
};

// fc2(gelu(fc1(rows))), GELU by erf.
struct FeedForward {
  Linear in, out;

  at::Tensor operator()(const at::Tensor& rows) const;
};

}  // namespace longshort
