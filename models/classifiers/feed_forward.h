// The feed-forward part of a block.
#pragma once

#include "ATen/core/Tensor.h"
#include "models/layers/linear.h"
#include "models/layers/tensor_move.h"

namespace longshort {

// fc2(gelu(fc1(rows))), GELU by erf.
struct FeedForward {
  Linear in, out;

  at::Tensor operator()(const at::Tensor& rows) const;

  void MoveBy(TensorMove& move) { move(in, out); }
};

}  // namespace longshort
