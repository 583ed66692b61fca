// The row-wise halves of a layer for training on CPUs, by the fused kernels of
// models/ops/layer_halves/layer_halves_kernels.h. The references are the layers' forms of LibTorch's operations, which
// have the same results and the same gradients.
#pragma once

#include "ATen/core/Tensor.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

// Biases of maps may be undefined: none.

// Whether gradients are kept, and the kernels can compute them: float32 on the CPU, and widths of whole vectors.
bool CanRunHalves(const at::Tensor& rows, const Linear& output, const Linear& feed_forward_in);

struct ProjectedRows {
  at::Tensor queries, keys, values;  // [rows, D]; keys and values after window_norm
  at::Tensor logits;                 // [rows, heads * R]; without a projection [rows, 0]
  at::Tensor keys_values;            // [rows, 2 D]: before window_norm
  at::Tensor input;                  // [rows, D]: norm(rows); without `keeps_input` [0]
};

// What is before attention, of rows [rows, D].
//   norm, window_norm  undefined: none
//   projection         undefined: none
struct BeforeAttention {
  const LayerNorm& norm;
  const Linear &query, &key, &value, &projection;
  const LayerNorm& window_norm;
  bool keeps_input = false;

  ProjectedRows operator()(const at::Tensor& rows) const;
};

// What is behind attention: s = rows + output(attended), n = norm(s), and (normed_residual ? n : s) + out(gelu(in(n))).
struct AfterAttention {
  const Linear& output;
  const LayerNorm& norm;
  const Linear &in, &out;
  bool normed_residual = false;

  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& attended) const;
};

}  // namespace longshort::models
