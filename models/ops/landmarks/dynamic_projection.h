// Dynamic projection (equation 3 of the paper): each chunk of C rows is compressed to R vectors per head, with weights
// that depend on the rows. The reference op: differentiable, any device.
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/item_attention.h"

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

// Mixes the rows of each document on the CPU, with a gradient of its own, each head in its own channels, with a softmax
// of its logits over the rows.
//   logits  [rows, heads * R]
//   tokens  [rows, d]
//   returns [documents, R, d], not normalised
// REQUIRES: HaveVectorHeads(heads, tokens.keys).
RowKeyValues MixDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads, const at::Tensor& logits,
                          const RowKeyValues& tokens);

}  // namespace longshort::models

// Dynamic projection of one finished chunk (equation 3 of the paper). The op that is served: it equals the reference
// op, but its rows need not be contiguous. A chunk is mixed once, in row order.
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
