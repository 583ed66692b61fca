#include "models/ops/landmarks/chunk_mixing.h"

#include <algorithm>
#include <cmath>

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
