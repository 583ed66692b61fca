// Documents of any lengths as the rows of one matrix: one row per token, without padding.
//
// Masked tokens get no rows, because no result depends on them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/ops/rows/head_rows.h"

namespace longshort::models {

// The windows of a document. Its positions are split into segments of `size`. A token sees its own segment and max(size
// / 2, 1) more positions on either side. With size 0, a token sees itself, or, with see_nothing, no token.
struct WindowRule {
  int64_t size = 0;
  bool see_nothing = false;
};

// The tokens that have rows.
struct TokenRule {
  int64_t padding_id = 0;  // masked
  // The first token of each document that is not masked stands apart, as its CLS row, and masked tokens have no
  // positions. Otherwise positions and windows count masked tokens.
  bool first_apart = false;
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
  std::vector<int64_t> ids;        // [rows], none is masked
  std::vector<int64_t> positions;  // [rows]: ascending within a document; from 0, without the token that stands apart
  std::vector<int64_t> cls_ids;    // [documents]: of the CLS rows that are tokens; empty if there are none
  std::vector<PackedDocument> documents;

  int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  // The number of rows of each document.
  std::vector<int64_t> Lengths() const;
};

// REQUIRES: every document has a token that is not masked.
PackedDocuments PackDocuments(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& windows,
                              const TokenRule& tokens = {});

}  // namespace longshort::models
