// Documents of any lengths as the rows of one matrix: one row for each token, none for padding.
//
// Tokens of id 0 are masked: nothing reads what the model computes of them, so they get no rows. They keep their
// places, though: positions and windows are counted with them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/kernels/window_segment.h"

namespace longshort::models {

// The windows of a document. Its positions are cut into segments of `size`; a token sees the segment that it is in and
// max(size / 2, 1) positions more on either side. Of size 0, a token sees itself, or (see_nothing) no token.
struct WindowRule {
  int64_t size = 0;
  bool see_nothing = false;
};

struct PackedDocument {
  int64_t first_row = 0;
  int64_t rows = 0;
  // Every row is a query of one segment, in the order of rows.
  std::vector<WindowSegment> segments;

  // Pairs of a query and a key of its window.
  int64_t VisiblePairs() const;
};

struct PackedDocuments {
  std::vector<int64_t> ids;        // [rows], none is 0
  std::vector<int64_t> positions;  // [rows]: ascending within a document, from 0
  std::vector<PackedDocument> documents;

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  // Rows of each document.
  std::vector<int64_t> Lengths() const;
};

// REQUIRES: no document is empty or all zeros.
PackedDocuments PackDocuments(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& rule);

}  // namespace longshort::models
