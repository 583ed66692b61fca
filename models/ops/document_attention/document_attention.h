// Bidirectional long-short attention of all rows of a batch of documents, for serving and training. Uses a kernel on
// the CPU, and the reference op on other devices.
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "models/ops/document_attention/packed_documents.h"

namespace longshort::models {

// Every document attends to its own rows only, as in LongShortAttention1d.
//   queries, keys, values       [rows, heads * head_dim]; queries not scaled
//   shared_keys, shared_values  [documents, m, heads * head_dim]
//   others                      number of rows before the result, for the caller to write
//   returns                     [others + rows, heads * head_dim]; gradients reach all five tensors
// The gradients keep `packed` alive until they are computed.
at::Tensor AttendDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                           const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                           const at::Tensor& shared_keys, const at::Tensor& shared_values, int64_t others = 0);

// The same, without others, with the reference op (models/ops/document_attention/long_short_attention_1d.h), one
// document at a time. For any device and element type.
at::Tensor AttendDocumentsByReference(const PackedDocuments& packed, int64_t heads, const at::Tensor& queries,
                                      const at::Tensor& keys, const at::Tensor& values, const at::Tensor& shared_keys,
                                      const at::Tensor& shared_values);

// Multiply-adds of one AttendDocuments with `shared` shared vectors: scores and weighted sums.
int64_t AttentionMultiplyAdds(const PackedDocuments& packed, int64_t shared, int64_t model_width);

}  // namespace longshort::models
