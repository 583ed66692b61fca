// Documents of any lengths as the rows of one matrix: one row per token, without padding.
//
// Tokens of id 0 are masked: no result depends on them, so they get no rows. Positions and windows still count them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/kernels/window_segment.h"

namespace longshort::models {

// The windows of a document. Its positions are split into segments of `size`. A token sees its own segment and max(size
// / 2, 1) more positions on either side. With size 0, a token sees itself, or, with see_nothing, no token.
struct WindowRule {
  int64_t size = 0;
  bool see_nothing = false;
};

struct PackedDocument {
  int64_t first_row = 0;
  int64_t rows = 0;
  // Each row is a query of one segment, in row order.
  std::vector<WindowSegment> segments;

  // The number of pairs of a query and a key of its window.
  int64_t VisiblePairs() const;
};

struct PackedDocuments {
  std::vector<int64_t> ids;        // [rows], none is 0
  std::vector<int64_t> positions;  // [rows]: ascending within a document, from 0
  std::vector<PackedDocument> documents;

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  // The number of rows of each document.
  std::vector<int64_t> Lengths() const;
};

// REQUIRES: no document is empty or all zeros.
PackedDocuments PackDocuments(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& rule);

}  // namespace longshort::models
