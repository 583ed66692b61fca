// Bidirectional long-short attention from all rows of a batch of documents, as it is served and trained: by a kernel on
// the CPU, by the reference op on other devices.
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "models/attention/packed_documents.h"

namespace longshort::models {

// Every document attends over its own rows only; LongShortAttention1d says how.
//   queries, keys, values       [rows, heads * head_dim]; queries scaled by 1/sqrt(head_dim)
//   shared_keys, shared_values  [documents, m, heads * head_dim]
//   returns                     [rows, heads * head_dim]; gradients reach all five tensors, and keep `packed` until
//   then
at::Tensor AttendDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                           const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                           const at::Tensor& shared_keys, const at::Tensor& shared_values);

// The same by the reference op (models/attention/long_short_attention_1d.h), one document after the other: for any
// device and type of number.
at::Tensor AttendDocumentsByReference(const PackedDocuments& packed, int64_t heads, const at::Tensor& queries,
                                      const at::Tensor& keys, const at::Tensor& values, const at::Tensor& shared_keys,
                                      const at::Tensor& shared_values);

// Multiply-adds of one AttendDocuments with m shared vectors: scores and weighted sums.
int64_t AttentionMultiplyAdds(const PackedDocuments& packed, int64_t shared, int64_t model_width);

}  // namespace longshort::models
