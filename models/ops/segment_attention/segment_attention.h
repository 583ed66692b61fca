// Causal long-short attention of all tokens of a batch of streams, for training. Uses a kernel on the CPU while
// gradients are kept, and else the reference op.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/ops/causal_attention/causal_attention.h"

namespace longshort::models {

struct SegmentGrid {
  int64_t heads = 0;
  int64_t segment_length = 0;  // L, a multiple of the chunk size
  int64_t chunk_size = 0;      // C
  int64_t rank = 0;            // R, vectors of a chunk
  int64_t past_vectors = 0;    // compressed vectors of the memory before each segment
};

// Rows of T tokens, T a multiple of L, that begin a segment.
struct SegmentTensors {
  at::Tensor queries;                       // [batch, T, d], scaled by 1/sqrt(head_dim)
  at::Tensor window_keys, window_values;    // [batch, W-1+T, d]
  at::Tensor memory_keys, memory_values;    // [batch, past_vectors + T/C*R, d]: as later segments see them
  at::Tensor segment_keys, segment_values;  // [batch, T/C*R, d]: as the chunk's own segment sees them
};

// A query sees W rows up to its own; the vectors of the memory before its segment; and those of the chunks before its
// own in the segment.
//   returns  [batch, T, d]; gradients reach all tensors
at::Tensor AttendSegments(const SegmentGrid& grid, const SegmentTensors& tensors, const RelativePositions& positions);

// The same by CausalAttention, for any device and element type.
at::Tensor AttendSegmentsByReference(const SegmentGrid& grid, const SegmentTensors& tensors,
                                     const RelativePositions& positions);

}  // namespace longshort::models
