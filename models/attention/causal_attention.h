// Causal long-short attention: one softmax over a sliding window and compressed chunks. The reference op:
// differentiable, any device, whole chunks of queries. The served op with the same result is in models/kernels.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace longshort::models {

// What a layer learned about positions, as vectors per distance.
struct RelativePositions {
  at::Tensor window;         // [W, heads, head_dim]: r_net S(a) of distance a
  at::Tensor chunk;          // [N, heads, head_dim]: r_net_chunk S(n) of distance n, in compressed vectors
  at::Tensor window_bias;    // [heads, head_dim]: r_w_bias, added to queries that meet window keys
  at::Tensor relative_bias;  // [heads, head_dim]: r_r_bias, added to queries that meet window positions
};

// Attends from n queries of one segment, n a multiple of `chunk_size`, the first at the start of a chunk.
//
//   queries       [batch, n, heads, head_dim], scaled by 1/sqrt(head_dim)
//   window_*      [batch, W-1+n, heads, head_dim]
//   chunk_*       [batch, m, heads, head_dim], m = visible + (n / chunk_size - 1) * rank
//   returns       [batch, n, heads * head_dim]
//
// The window's rows are those of positions p-W+1 .. p+n-1, for a first query at p. The chunks' vectors are those on the
// grid, oldest first: the queries of the first chunk see the first `visible`, each later chunk `rank` more.
at::Tensor CausalAttention(const at::Tensor& queries, const at::Tensor& window_keys, const at::Tensor& window_values,
                           const at::Tensor& chunk_keys, const at::Tensor& chunk_values, int64_t visible,
                           int64_t chunk_size, int64_t rank, const RelativePositions& positions);

}  // namespace longshort::models
