// Dynamic projection of one finished chunk (equation 3 of the paper). The op that is served: it equals the reference op
// (models/ops/landmarks/dynamic_projection.h), but its rows need not be contiguous. A chunk is mixed once, in row
// order.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace longshort::models::cpu {

// Computes the weights of a chunk's rows: for each column, a softmax over the rows.
//   logits   [chunk] pointers to rows of heads * rank floats, column = head * rank + t
//   weights  [chunk][heads * rank], written
void ChunkWeights(absl::Span<const float* const> logits, int64_t columns, float* weights);

// Mixes the rows of a chunk, each head in its own slice of the channels.
//   rows     [chunk] pointers to rows of heads * head_width floats
//   weights  [chunk][heads * rank]
//   mixed    [rank][heads * head_width], written; `stride` floats from one vector to the next
void MixChunk(absl::Span<const float* const> rows, const float* weights, int64_t heads, int64_t rank,
              int64_t head_width, float* mixed, int64_t stride);

}  // namespace longshort::models::cpu
