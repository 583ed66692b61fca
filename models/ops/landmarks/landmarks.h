// The dynamic projection of whole documents to landmarks on the CPU, with its gradient (equation 3 of the paper).
#pragma once

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/item_attention.h"

namespace longshort::models {

// Mixes the rows of each document, each head in its own channels, with a softmax of its logits over the rows.
//   logits  [rows, heads * R]
//   tokens  [rows, d]
//   returns [documents, R, d], not normalised
// REQUIRES: HaveVectorHeads(heads, tokens.keys).
RowKeyValues MixDocuments(const std::shared_ptr<const PackedDocuments>& packed, int64_t heads, const at::Tensor& logits,
                          const RowKeyValues& tokens);

}  // namespace longshort::models
