// Windows and tiles of documents with any segments, on the host: the plain form of document_places_kernels.h, for
// tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cuda {

struct DocumentTiles {
  std::vector<DocumentTile> tiles;
  std::vector<WindowRows> windows;

  // Adds the next document, whose rows follow the previous document's. It is split every kTileRows rows from its first
  // row on, so that its bits do not depend on its place in the batch.
  //   segments  those of PackedDocument: each row is a query of one segment, in row order
  void Add(absl::Span<const WindowSegment> segments) {
    const auto first = static_cast<int64_t>(windows.size());
    for (const WindowSegment& segment : segments) {
      windows.resize(windows.size() + segment.end_query - segment.first_query,
                     {.begin = first + segment.first_key, .end = first + segment.end_key});
    }
    const auto end = static_cast<int64_t>(windows.size());
    for (int64_t row = first; row < end; row += kTileRows) {
      const int64_t rows = std::min<int64_t>(kTileRows, end - row);
      WindowRows keys = {.begin = end, .end = first};
      for (int64_t i = row; i < row + rows; ++i) {
        if (windows[i].begin >= windows[i].end) continue;
        keys = {.begin = std::min(keys.begin, windows[i].begin), .end = std::max(keys.end, windows[i].end)};
      }
      if (keys.begin >= keys.end) keys = {.begin = row, .end = row};
      tiles.push_back({.first_row = row,
                       .rows = rows,
                       .first_key = keys.begin,
                       .keys = keys.end - keys.begin,
                       .document = documents_});
    }
    ++documents_;
  }

 private:
  int64_t documents_ = 0;
};

}  // namespace longshort::models::cuda
