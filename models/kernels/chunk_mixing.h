// Dynamic projection of one finished chunk: the served drop-in for the reference op
// (models/attention/dynamic_projection.h), which takes its rows from wherever they lie. A chunk is mixed once, in the
// order of its rows.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace longshort::models::cpu {

// Weights of a chunk's rows: a softmax over the rows, for each column.
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
