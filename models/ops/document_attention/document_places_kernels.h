// Where the rows of packed documents are, for the kernels of document_attention_kernels.h: a GPU computes this from the
// documents' ranges, so that only ids are uploaded.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// The document's first tile. A document is split every kTileRows rows from its first row on, so that its bits do not
// depend on its place in the batch.
struct DocumentStart {
  int32_t tile;
  int32_t has_positions;  // 0: its rows have positions 0, 1, 2, ...
};

// A row at position p is in the segment that begins at b = p / segment * segment. It sees the document's rows with
// positions from b - margin to b + segment + margin, exclusive. Without a segment, it sees none.
// Rows behind the last document get position 0, and tiles behind its tiles no rows.
struct DocumentsToPlace {
  const ItemRows* documents;     // [document_count], the first rows ascending
  const DocumentStart* starts;   // [document_count], the tiles ascending
  int document_count;            // at least 1
  const int32_t* own_positions;  // [rows]; only those of documents that have positions are read
  int segment;                   // 0: none
  int margin;

  // Written:
  int64_t rows;
  int64_t* positions;   // [rows]
  WindowRows* windows;  // [rows], of the documents' rows
  DocumentTile* tiles;  // [tile_count]
  int tile_count;       // at least the documents' tiles, and 1 more for each kTileRows rows, or part of them, behind
};
KernelCall PlaceDocumentsCall(const DocumentsToPlace& arguments);

}  // namespace longshort::models::cuda
