// Which of a step's rows are attended from alone, and which in tiles: the index arrays of causal_attention.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/gpu/causal_attention.h"

namespace longshort::models::cuda {

struct QueryTiles {
  std::vector<int64_t> rows;   // for DecodeAttention
  std::vector<int64_t> tiles;  // for PromptAttention: first row and number of rows, of each
};

// Rows of one slice and segment that follow each other make tiles, if there are `least` of them, else each is alone.
// The result is the same to the bit: it is a matter of speed. Arrays as StepPlan's.
inline QueryTiles TilesOf(absl::Span<const int64_t> row_slices, absl::Span<const int64_t> segment_starts,
                          int64_t least) {
  QueryTiles tiles;
  const auto count = static_cast<int64_t>(row_slices.size());
  for (int64_t first = 0, end = 0; first < count; first = end) {
    while (end < count && row_slices[end] == row_slices[first] && segment_starts[end] == segment_starts[first]) ++end;
    if (end - first < least) {
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
