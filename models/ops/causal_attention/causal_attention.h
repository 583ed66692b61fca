// Causal long-short attention: one softmax over a sliding window and compressed chunks. The reference op:
// differentiable, any device, whole chunks of queries. The CPU serves the op by a kernel, which has the same
// result.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace longshort::models {

// A layer's learned positions, as vectors per distance.
struct RelativePositions {
  at::Tensor window;         // [W, heads, head_dim]: r_net S(a) of distance a
  at::Tensor chunk;          // [N, heads, head_dim]: r_net_chunk S(n) of distance n, in compressed vectors
  at::Tensor window_bias;    // [heads, head_dim]: r_w_bias, added to queries that meet window keys
  at::Tensor relative_bias;  // [heads, head_dim]: r_r_bias, added to queries that meet window positions
};

// Attention of n queries of one segment. n is a multiple of `chunk_size`, and the first query begins a chunk.
//
//   queries       [batch, n, heads, head_dim], scaled by 1/sqrt(head_dim)
//   window_*      [batch, W-1+n, heads, head_dim]
//   chunk_*       [batch, m, heads, head_dim], m = visible + (n / chunk_size - 1) * rank
//   returns       [batch, n, heads * head_dim]
//
// With the first query at position p, the window's rows are positions p-W+1 .. p+n-1. The chunks' vectors are ordered
// as on the grid, oldest first. The queries of the first chunk see the first `visible` vectors; those of each later
// chunk see `rank` more.
at::Tensor CausalAttention(const at::Tensor& queries, const at::Tensor& window_keys, const at::Tensor& window_values,
                           const at::Tensor& chunk_keys, const at::Tensor& chunk_values, int64_t visible,
                           int64_t chunk_size, int64_t rank, const RelativePositions& positions);

// S(min(p, clamp)) for p = 0 .. count-1; a clamp below 1 has no effect.
//   inverse_frequencies  [d/2], as stored with the weights
//   returns              [count, d], of the same type, on the same device
at::Tensor SinusoidalPositions(const at::Tensor& inverse_frequencies, int64_t count, int64_t clamp);

}  // namespace longshort::models
