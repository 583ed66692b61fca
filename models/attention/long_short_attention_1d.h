// Bidirectional long-short attention over documents: one softmax over a window around the query and a few vectors that
// every query of the document sees. The reference op: differentiable, any device, memory linear in tokens. The op that
// is served and trained, with the same result, is models/attention/document_attention.h.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/attention/packed_documents.h"

namespace longshort::models {

// Attends from all rows of a document.
//   queries                     [rows, heads, head_dim], scaled by 1/sqrt(head_dim)
//   keys, values                [rows, heads, head_dim]: each query sees those that its segment says
//   shared_keys, shared_values  [m, heads, head_dim]: m >= 0 vectors that every query sees: CLS, landmarks
//   returns                     [rows, heads, head_dim]
// REQUIRES: every query sees something.
at::Tensor LongShortAttention1d(const PackedDocument& document, const at::Tensor& queries, const at::Tensor& keys,
                                const at::Tensor& values, const at::Tensor& shared_keys,
                                const at::Tensor& shared_values);

// Convolves values along the positions of their document, each head with its own taps; masked positions count as zeros
// and are not worked on.
//   values   [rows, heads, head_dim]
//   taps     [heads, kernel], kernel odd; the middle one meets the row's own position
//   returns  [rows, heads, head_dim]
at::Tensor ConvolveValues(const PackedDocuments& packed, const at::Tensor& values, const at::Tensor& taps);

// Pairs of a row and a row that its convolution reads.
int64_t ConvolvedPairs(const PackedDocuments& packed, int64_t kernel);

}  // namespace longshort::models
