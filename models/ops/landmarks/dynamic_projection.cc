#include "models/ops/landmarks/dynamic_projection.h"

#include "ATen/Functions.h"

namespace longshort::models {

at::Tensor ProjectionWeights(const at::Tensor& logits, int64_t heads, int64_t chunk_size) {
  const int64_t batch = logits.size(0);
  const int64_t rank = logits.size(2) / heads;
  return logits.view({batch, -1, chunk_size, heads, rank}).permute({0, 1, 4, 3, 2}).softmax(-1);
}

at::Tensor MixChunks(const at::Tensor& weights, const at::Tensor& rows) {
  const int64_t batch = weights.size(0), chunks = weights.size(1), rank = weights.size(2), heads = weights.size(3);
  const int64_t chunk_size = weights.size(4), head_dim = rows.size(2) / heads;
  // [batch, chunks, heads, rank, chunk] x [batch, chunks, heads, chunk, head_dim]
  const at::Tensor by_head = rows.view({batch, chunks, chunk_size, heads, head_dim}).transpose(2, 3);
  const at::Tensor mixed = at::matmul(weights.transpose(2, 3), by_head);
  return mixed.transpose(2, 3).reshape({batch, chunks * rank, heads * head_dim});
}

}  // namespace longshort::models
