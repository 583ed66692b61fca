// Bidirectional long-short attention over documents: one softmax over a window around the query and a few vectors that
// every query of the document sees.
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/layers/dropout.h"

namespace longshort::models {

// Attention of all rows of a document. The reference op: differentiable, any device, memory linear in tokens.
//   queries                     [rows, heads, head_dim], scaled by 1/sqrt(head_dim)
//   keys, values                [rows, heads, head_dim]: each query sees the rows that its segment names
//   shared_keys, shared_values  [m, heads, head_dim]: m >= 0 vectors that every query sees: CLS, landmarks
//   dropout                     of the probabilities; null: none
//   returns                     [rows, heads, head_dim]
// REQUIRES: every query sees at least one key.
at::Tensor LongShortAttention1d(const PackedDocument& document, const at::Tensor& queries, const at::Tensor& keys,
                                const at::Tensor& values, const at::Tensor& shared_keys,
                                const at::Tensor& shared_values, Dropout* dropout = nullptr);

// Convolves values along the positions of their document, with separate taps for each head. Masked positions count as
// zeros and cost nothing.
//   values   [rows, heads, head_dim]
//   taps     [heads, kernel], kernel odd; the middle one applies to the row's own position
//   returns  [rows, heads, head_dim]
at::Tensor ConvolveValues(const PackedDocuments& packed, const at::Tensor& values, const at::Tensor& taps);

// The number of pairs of a row and a row that its convolution reads.
int64_t ConvolvedPairs(const PackedDocuments& packed, int64_t kernel);

// The same for all documents of a batch, for serving and training: by a kernel on the CPU, and by the reference op on
// other devices and with dropout of the probabilities. Every document attends to its own rows only.
//   queries, keys, values       [rows, heads * head_dim]; queries not scaled
//   shared_keys, shared_values  [documents, m, heads * head_dim]
//   others                      number of rows before the result, for the caller to write
//   returns                     [others + rows, heads * head_dim]; gradients reach all five tensors
// The gradients keep `packed` alive until they are computed.
at::Tensor AttendDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                           const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                           const at::Tensor& shared_keys, const at::Tensor& shared_values, int64_t others = 0,
                           Dropout* dropout = nullptr);

// The same, without others, by the reference op, one document at a time. For any device and element type.
at::Tensor AttendDocumentsByReference(const PackedDocuments& packed, int64_t heads, const at::Tensor& queries,
                                      const at::Tensor& keys, const at::Tensor& values, const at::Tensor& shared_keys,
                                      const at::Tensor& shared_values, Dropout* dropout = nullptr);

// Multiply-adds of one AttendDocuments with `shared` shared vectors: scores and weighted sums.
int64_t AttentionMultiplyAdds(const DocumentCounts& counts, int64_t shared, int64_t model_width);

}  // namespace longshort::models
