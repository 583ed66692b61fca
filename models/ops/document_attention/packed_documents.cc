#include "models/ops/document_attention/packed_documents.h"

#include <algorithm>

namespace longshort::models {
namespace {

// `positions`: of a document's rows, ascending.
std::vector<WindowSegment> CutSegments(absl::Span<const int64_t> positions, const WindowRule& rule) {
  const auto rows = static_cast<int64_t>(positions.size());
  if (rows == 0) return {};
  if (rule.size == 0 && rule.see_nothing) return {{.first_query = 0, .end_query = rows}};
  const int64_t size = std::max<int64_t>(rule.size, 1);
  const int64_t margin = rule.size == 0 ? 0 : std::max<int64_t>(rule.size / 2, 1);
  std::vector<WindowSegment> segments;
  WindowSegment next;
  // Returns the first row >= `row` whose position is >= `position`.
  const auto first_from = [&](int64_t row, int64_t position) {
    while (row < rows && positions[row] < position) ++row;
    return row;
  };
  while (next.end_query < rows) {
    next.first_query = next.end_query;
    const int64_t begin = positions[next.first_query] / size * size;
    next.end_query = first_from(next.first_query, begin + size);
    next.first_key = first_from(next.first_key, begin - margin);
    next.end_key = first_from(std::max(next.end_key, next.end_query), begin + size + margin);
    segments.push_back(next);
  }
  return segments;
}

}  // namespace

int64_t PackedDocument::VisiblePairs() const {
  int64_t pairs = 0;
  for (const WindowSegment& segment : segments)
    pairs += (segment.end_query - segment.first_query) * (segment.end_key - segment.first_key);
  return pairs;
}

std::vector<int64_t> PackedDocuments::Lengths() const {
  std::vector<int64_t> lengths;
  lengths.reserve(documents.size());
  for (const PackedDocument& document : documents) lengths.push_back(document.rows);
  return lengths;
}

PackedDocuments PackDocuments(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& windows,
                              const TokenRule& tokens) {
  PackedDocuments packed;
  for (const absl::Span<const int32_t> document : documents) {
    const int64_t first_row = packed.rows();
    int64_t position = 0;
    bool apart = tokens.first_apart;
    for (const int32_t id : document) {
      if (id == tokens.padding_id) {
        if (!tokens.first_apart) ++position;
      } else if (apart) {
        packed.cls_ids.push_back(id);
        apart = false;
      } else {
        packed.ids.push_back(id);
        packed.positions.push_back(position++);
      }
    }
    packed.documents.push_back(
        {.first_row = first_row,
         .rows = packed.rows() - first_row,
         .segments = CutSegments(absl::MakeConstSpan(packed.positions).subspan(first_row), windows)});
  }
  return packed;
}

}  // namespace longshort::models
