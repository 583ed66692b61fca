// Bidirectional long-short attention over documents: one softmax over a window around the query and a few vectors that
// every query of the document sees. The reference op: differentiable, any device, memory linear in tokens. Serving and
// training use models/ops/document_attention/document_attention.h, which has the same result.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/ops/document_attention/packed_documents.h"

namespace longshort::models {

// Attention of all rows of a document.
//   queries                     [rows, heads, head_dim], scaled by 1/sqrt(head_dim)
//   keys, values                [rows, heads, head_dim]: each query sees the rows that its segment names
//   shared_keys, shared_values  [m, heads, head_dim]: m >= 0 vectors that every query sees: CLS, landmarks
//   returns                     [rows, heads, head_dim]
// REQUIRES: every query sees at least one key.
at::Tensor LongShortAttention1d(const PackedDocument& document, const at::Tensor& queries, const at::Tensor& keys,
                                const at::Tensor& values, const at::Tensor& shared_keys,
                                const at::Tensor& shared_values);

// Convolves values along the positions of their document, with separate taps for each head. Masked positions count as
// zeros and cost nothing.
//   values   [rows, heads, head_dim]
//   taps     [heads, kernel], kernel odd; the middle one applies to the row's own position
//   returns  [rows, heads, head_dim]
at::Tensor ConvolveValues(const PackedDocuments& packed, const at::Tensor& values, const at::Tensor& taps);

// The number of pairs of a row and a row that its convolution reads.
int64_t ConvolvedPairs(const PackedDocuments& packed, int64_t kernel);

}  // namespace longshort::models
