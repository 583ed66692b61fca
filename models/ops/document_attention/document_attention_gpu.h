// Bidirectional long-short attention of packed documents of any lengths, in one launch. Equals the reference op
// (models/ops/document_attention/long_short_attention_1d.h) for each document.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/ops/rows/row_attention.h"

namespace longshort::models::cuda {

// Queries of one document that one thread block processes together (document_tiles.h).
struct DocumentTile {
  int64_t first_row, rows;  // 0 .. kTileRows
  int64_t first_key, keys;  // union of its rows' windows; may be empty
  int64_t document;         // its m shared vectors begin at row document * m
};
struct WindowRows {
  int64_t begin, end;  // rows that one row sees; the end is exclusive
};

struct DocumentAttention {
  RowAttention attention;
  const DocumentTile* tiles;  // [tile_count]
  int tile_count;
  const WindowRows* windows;  // [rows]
};
// REQUIRES: every row sees at least one key.
KernelCall DocumentAttentionCall(const DocumentAttention& arguments);

}  // namespace longshort::models::cuda
