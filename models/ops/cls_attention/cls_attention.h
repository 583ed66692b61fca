// Attention from one row of each document to the document's rows on the CPU, with its gradient.
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/item_attention.h"

namespace longshort::models {

// As ItemAttention::AttendToRows.
//   queries  [documents, d], scaled by 1/sqrt(head_dim)
//   own      [documents, d]
//   rows     [rows, d]
//   returns  [documents, d]
// REQUIRES: HaveVectorHeads(heads, rows.keys).
at::Tensor AttendFromDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads,
                               const at::Tensor& queries, const RowKeyValues& own, const RowKeyValues& rows);

}  // namespace longshort::models
