// Dynamic projection (equation 3 of the paper): each chunk of C rows is compressed to R vectors per head, with weights
// that depend on the rows. The reference op: differentiable, any device.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace longshort::models {

// Returns the weights of the rows: a softmax over the rows of each chunk.
//   logits   [batch, chunks * chunk, heads * rank]   column = head * rank + t
//   returns  [batch, chunks, rank, heads, chunk]
at::Tensor ProjectionWeights(const at::Tensor& logits, int64_t heads, int64_t chunk_size);

// Mixes the rows of each chunk, each head in its own slice of the channels.
//   weights  [batch, chunks, rank, heads, chunk]
//   rows     [batch, chunks * chunk, heads * head_dim]
//   returns  [batch, chunks * rank, heads * head_dim], vector j = chunk * rank + t
at::Tensor MixChunks(const at::Tensor& weights, const at::Tensor& rows);

}  // namespace longshort::models
