// Decides which rows of a step attend one by one, and which in tiles: the index arrays of causal_attention.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"

namespace longshort::models::cuda {

struct QueryTiles {
  std::vector<int64_t> rows;   // for DecodeAttention
  std::vector<int64_t> tiles;  // for PromptAttention: first row and number of rows, of each
};

// Puts consecutive rows of one slice and segment into tiles if there are at least `min_rows` of them, else leaves each
// row by itself. Affects speed only: the results are bit-identical. The arrays are StepPlan's.
inline QueryTiles TilesOf(absl::Span<const int64_t> row_slices, absl::Span<const int64_t> segment_starts,
                          int64_t min_rows) {
  QueryTiles tiles;
  const auto count = static_cast<int64_t>(row_slices.size());
  for (int64_t first = 0, end = 0; first < count; first = end) {
    while (end < count && row_slices[end] == row_slices[first] && segment_starts[end] == segment_starts[first]) ++end;
    if (end - first < min_rows) {
      for (int64_t row = first; row < end; ++row) tiles.rows.push_back(row);
      continue;
    }
    for (int64_t row = first; row < end; row += kTileRows) {
      tiles.tiles.insert(tiles.tiles.end(), {row, std::min<int64_t>(kTileRows, end - row)});
    }
  }
  return tiles;
}

}  // namespace longshort::models::cuda
