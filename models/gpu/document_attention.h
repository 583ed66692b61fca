// Bidirectional long-short attention of packed documents of any lengths, in one launch: as the reference op
// (models/attention/long_short_attention_1d.h) for each document.
#pragma once

#include <cstdint>

#include "models/gpu/kernel_call.h"
#include "models/gpu/row_attention.h"

namespace longshort::models::cuda {

// Rows of one document that are attended from together (document_tiles.h).
struct DocumentTile {
  int64_t first_row, rows;  // 0 .. kTileRows
  int64_t first_key, keys;  // rows that its rows' windows have together; none: 0 keys
  int64_t document;         // whose shared vectors: m from row document * m on
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
// REQUIRES: every row sees something.
KernelCall DocumentAttentionCall(const DocumentAttention& arguments);

}  // namespace longshort::models::cuda
