// Attention of causal_attention.h for the queries of prompts, by the processor's matrix tiles (AMX).
//
// Queries and probabilities are rounded to bfloat16; their products are summed in float32. Queries form groups of 16 on
// the absolute grid of positions, and so do the keys that are folded together. So a query's result has the same bits
// whatever the other queries of the run are.
#pragma once

#include <cstdint>

#include "models/ops/causal_attention/causal_attention_kernels.h"

namespace longshort::models::cpu {

// Rows of a tile.
inline constexpr int64_t kTileRows = 16;
// The most columns by which the distances of queries of a group may differ.
inline constexpr int64_t kTileSpread = 64;
// From so many queries on, a group is faster than single queries.
inline constexpr int64_t kQueriesForTiles = 4;

// Whether AttendByTiles can compute this shape.
constexpr bool FitsTiles(int64_t head_width, int64_t chunk_size, int64_t chunk_rank) {
  return head_width % (2 * kTileRows) == 0 && ((kTileRows - 2) / chunk_size + 1) * chunk_rank <= kTileSpread;
}

// Floats of AttentionRun::scratch.
int64_t TileScratchFloats(int64_t head_width);

// REQUIRES: FitsTiles; the processor has tiles for bfloat16, and the system permits their use; the run's positions lie
// in one block of 64 on the absolute grid.
void AttendByTiles(const AttentionRun<BFloat16>& run);

}  // namespace longshort::models::cpu
