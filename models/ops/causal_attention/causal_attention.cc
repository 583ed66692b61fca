#include "models/ops/causal_attention/causal_attention.h"

#include <algorithm>
#include <limits>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

LONGSHORT_SELECT(template <typename Element> void, Attend, (const AttentionRun<Element>& run), (run))

template void Attend(const AttentionRun<float>& run, InstructionSet set);
template void Attend(const AttentionRun<BFloat16>& run, InstructionSet set);

}  // namespace longshort::models::cpu

namespace longshort::models {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Masked scores of the window: row i has the scores of its W keys in columns i .. i+W-1, and -infinity elsewhere.
//   returns [batch, heads, n, n+W-1]
at::Tensor WindowScores(const at::Tensor& queries, const at::Tensor& keys, const RelativePositions& positions) {
  const int64_t batch = queries.size(0), n = queries.size(1), heads = queries.size(2);
  const int64_t window = positions.window.size(0);
  const at::Tensor content = at::matmul((queries + positions.window_bias).transpose(1, 2), keys.permute({0, 2, 3, 1}));

  // Distance W-1 (the oldest key) first, so that columns are in key order: [batch, heads, n, W].
  const at::Tensor by_distance = positions.window.flip(0).permute({1, 2, 0});
  const at::Tensor relative = at::matmul((queries + positions.relative_bias).transpose(1, 2), by_distance);

  // Shifts row i by i columns without a copy: rows of W+n elements are read as rows of W+n-1. The padding left and
  // right of each row's window then is the mask.
  const at::Tensor padded =
      at::constant_pad_nd(relative, {0, n}, kMinusInfinity).view({batch, heads, n * (window + n)});
  const at::Tensor shifted = padded.narrow(2, 0, n * (n + window - 1)).view({batch, heads, n, n + window - 1});
  return content + shifted;
}

// Scores of the compressed vectors; -infinity for those of the query's own chunk and of later ones.
//   returns [batch, heads, n, m]
at::Tensor ChunkScores(const at::Tensor& queries, const at::Tensor& keys, int64_t visible, int64_t chunk_size,
                       int64_t rank, const RelativePositions& positions) {
  const int64_t batch = queries.size(0), n = queries.size(1), heads = queries.size(2), head_dim = queries.size(3);
  const int64_t chunks = n / chunk_size, m = keys.size(1);
  const at::Tensor by_head = queries.transpose(1, 2);
  const at::Tensor content = at::matmul(by_head, keys.permute({0, 2, 3, 1}));

  // The distance of vector k from the queries of chunk i is visible + i*rank - 1 - k.
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(queries.device());
  const at::Tensor newest = at::arange(chunks, integers).mul(rank).add(visible - 1).unsqueeze(1);
  const at::Tensor distance = newest - at::arange(m, integers).unsqueeze(0);  // [chunks, m]
  const at::Tensor hidden = distance.lt(0);
  const at::Tensor by_distance = positions.chunk.index_select(0, distance.clamp_min(0).flatten())
                                     .view({chunks, m, heads, head_dim})
                                     .permute({2, 0, 3, 1});  // [heads, chunks, head_dim, m]
  const at::Tensor grouped = by_head.reshape({batch, heads, chunks, chunk_size, head_dim});
  const at::Tensor by_chunk = grouped.permute({1, 2, 0, 3, 4}).reshape({heads, chunks, batch * chunk_size, head_dim});
  const at::Tensor relative = at::matmul(by_chunk, by_distance)
                                  .masked_fill(hidden.view({1, chunks, 1, m}), kMinusInfinity)
                                  .view({heads, chunks, batch, chunk_size, m})
                                  .permute({2, 0, 1, 3, 4})
                                  .reshape({batch, heads, n, m});
  return content + relative;
}

}  // namespace

at::Tensor CausalAttention(const at::Tensor& queries, const at::Tensor& window_keys, const at::Tensor& window_values,
                           const at::Tensor& chunk_keys, const at::Tensor& chunk_values, int64_t visible,
                           int64_t chunk_size, int64_t rank, const RelativePositions& positions) {
  const at::Tensor window_scores = WindowScores(queries, window_keys, positions);
  const at::Tensor chunk_scores = ChunkScores(queries, chunk_keys, visible, chunk_size, rank, positions);
  const at::Tensor probabilities = at::cat({window_scores, chunk_scores}, 3).softmax(-1);
  const int64_t window_columns = window_scores.size(3);
  const at::Tensor mixed =
      at::matmul(probabilities.narrow(3, 0, window_columns), window_values.transpose(1, 2)) +
      at::matmul(probabilities.narrow(3, window_columns, chunk_scores.size(3)), chunk_values.transpose(1, 2));
  return mixed.transpose(1, 2).flatten(2);
}

at::Tensor SinusoidalPositions(const at::Tensor& inverse_frequencies, int64_t count, int64_t clamp) {
  constexpr int64_t kRows = 4096;  // at a time, since doubles take several times the memory of the result
  at::Tensor positions = at::arange(count, inverse_frequencies.options().dtype(at::kDouble));
  if (clamp > 0) positions = positions.clamp_max(clamp);
  const at::Tensor frequencies = inverse_frequencies.to(at::kDouble);
  at::Tensor table = at::empty({count, 2 * frequencies.size(0)}, inverse_frequencies.options());
  for (int64_t first = 0; first < count; first += kRows) {
    const int64_t rows = std::min(kRows, count - first);
    const at::Tensor angles = at::outer(positions.narrow(0, first, rows), frequencies);
    table.narrow(0, first, rows).copy_(at::cat({angles.sin(), angles.cos()}, 1));
  }
  return table;
}

}  // namespace longshort::models
