#include "models/ops/landmarks/dynamic_projection.h"

#include <algorithm>
#include <cmath>

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

namespace longshort::models::cpu {

void ChunkWeights(absl::Span<const float* const> logits, int64_t columns, float* weights) {
  const auto chunk_size = static_cast<int64_t>(logits.size());
  for (int64_t column = 0; column < columns; ++column) {
    float highest = logits[0][column];
    for (const float* const row : logits) highest = std::max(highest, row[column]);
    float sum = 0;
    for (int64_t i = 0; i < chunk_size; ++i) {
      float& weight = weights[i * columns + column];
      weight = std::exp(logits[i][column] - highest);
      sum += weight;
    }
    for (int64_t i = 0; i < chunk_size; ++i) weights[i * columns + column] /= sum;
  }
}

void MixChunk(absl::Span<const float* const> rows, const float* weights, int64_t heads, int64_t rank,
              int64_t head_width, float* mixed, int64_t stride) {
  const int64_t columns = heads * rank;
  for (int64_t t = 0; t < rank; ++t) std::fill_n(mixed + t * stride, heads * head_width, 0.0f);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t t = 0; t < rank; ++t) {
      for (int64_t head = 0; head < heads; ++head) {
        const float weight = weights[static_cast<int64_t>(i) * columns + head * rank + t];
        const float* const from = rows[i] + head * head_width;
        float* const to = mixed + t * stride + head * head_width;
        for (int64_t c = 0; c < head_width; ++c) to[c] += weight * from[c];
      }
    }
  }
}

}  // namespace longshort::models::cpu
