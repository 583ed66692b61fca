#include "models/ops/document_attention/packed_documents.h"

#include <algorithm>
#include <numeric>

#include "models/ops/document_attention/document_attention.h"

namespace longshort::models {
namespace {

// `positions`: of a document's rows, ascending.
std::vector<WindowSegment> CutSegments(absl::Span<const int64_t> positions, const WindowRule& rule) {
  const auto rows = static_cast<int64_t>(positions.size());
  if (rows == 0) return {};
  if (rule.size == 0 && rule.see_nothing) return {{.first_query = 0, .end_query = rows}};
  const int64_t size = rule.segment(), margin = rule.margin();
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

// Appends 0, 1, 2, ..., rows - 1.
void AppendCount(int64_t rows, std::vector<int32_t>& positions) {
  positions.resize(positions.size() + rows);
  std::iota(positions.end() - rows, positions.end(), 0);
}

// VisiblePairs of a document without masked tokens.
int64_t VisiblePairsOf(int64_t rows, const WindowRule& rule) {
  if (rule.size == 0) return rule.see_nothing ? 0 : rows;
  const int64_t margin = rule.margin();
  int64_t pairs = 0;
  for (int64_t begin = 0; begin < rows; begin += rule.size) {
    const int64_t queries = std::min(rule.size, rows - begin);
    pairs += queries * (std::min(rows, begin + rule.size + margin) - std::max<int64_t>(0, begin - margin));
  }
  return pairs;
}

// The same for a convolution.
int64_t ConvolvedPairsOf(int64_t rows, int64_t taps) {
  int64_t pairs = 0;
  for (int64_t distance = -(taps / 2); distance <= taps / 2; ++distance) {
    pairs += std::max<int64_t>(0, rows - std::abs(distance));
  }
  return pairs;
}

PackedDocuments WithWindows(const PackedIds& ids) {
  PackedDocuments packed{.ids = {ids.ids.begin(), ids.ids.end()},
                         .positions = {ids.positions.begin(), ids.positions.end()},
                         .cls_ids = {ids.cls_ids.begin(), ids.cls_ids.end()},
                         .documents = {}};
  packed.positions.resize(packed.ids.size());
  int64_t first_row = 0;
  for (const int64_t rows : ids.lengths) {
    const absl::Span<int64_t> positions = absl::MakeSpan(packed.positions).subspan(first_row, rows);
    if (ids.positions.empty()) std::iota(positions.begin(), positions.end(), 0);
    packed.documents.push_back({.first_row = first_row, .rows = rows, .segments = CutSegments(positions, ids.windows)});
    first_row += rows;
  }
  return packed;
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

PackedIds PackIds(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& windows,
                  const TokenRule& tokens) {
  PackedIds packed;
  packed.windows = windows;
  size_t all = 0;
  for (const absl::Span<const int32_t> document : documents) all += document.size();
  packed.ids.reserve(all);
  const auto padding = static_cast<int32_t>(tokens.padding_id);
  const auto is_token = [padding](int32_t id) { return id != padding; };
  for (absl::Span<const int32_t> document : documents) {
    const auto first_row = static_cast<int64_t>(packed.ids.size());
    if (tokens.first_apart) {
      const auto first = std::find_if(document.begin(), document.end(), is_token);
      packed.cls_ids.push_back(*first);
      document.remove_prefix(first - document.begin() + 1);
    }
    while (!document.empty() && !is_token(document.back())) document.remove_suffix(1);
    // Counted first, because a document without masked tokens is copied many times as fast.
    const bool has_masked = std::count(document.begin(), document.end(), padding) > 0;
    const bool skips_positions = has_masked && !tokens.first_apart;
    if (skips_positions && packed.positions.empty()) {
      for (const int64_t rows : packed.lengths) AppendCount(rows, packed.positions);
    }
    if (has_masked) {
      // Each token is written, and the next one over it if it is masked: without a branch.
      const size_t most = packed.ids.size() + document.size();
      packed.ids.resize(most);
      if (skips_positions) packed.positions.resize(most);
      int64_t end = first_row;
      for (int32_t position = 0; position < std::ssize(document); ++position) {
        packed.ids[end] = document[position];
        if (skips_positions) packed.positions[end] = position;
        end += is_token(document[position]) ? 1 : 0;
      }
      packed.ids.resize(end);
      if (skips_positions) packed.positions.resize(end);
    } else {
      packed.ids.insert(packed.ids.end(), document.begin(), document.end());
    }
    packed.lengths.push_back(packed.rows() - first_row);
    if (!skips_positions && !packed.positions.empty()) AppendCount(packed.lengths.back(), packed.positions);
  }
  return packed;
}

PackedDocuments PackDocuments(absl::Span<const absl::Span<const int32_t>> documents, const WindowRule& windows,
                              const TokenRule& tokens) {
  return WithWindows(PackIds(documents, windows, tokens));
}

DocumentCounts CountsOf(const PackedDocuments& packed, int64_t taps) {
  DocumentCounts counts{.rows = packed.rows(), .documents = std::ssize(packed.documents)};
  for (const PackedDocument& document : packed.documents) counts.visible_pairs += document.VisiblePairs();
  if (taps > 0) counts.convolved_pairs = ConvolvedPairs(packed, taps);
  return counts;
}

DocumentCounts CountsOf(const PackedIds& packed, int64_t taps) {
  if (!packed.positions.empty()) return CountsOf(WithWindows(packed), taps);
  DocumentCounts counts{.rows = packed.rows(), .documents = std::ssize(packed.lengths)};
  for (const int64_t rows : packed.lengths) {
    counts.visible_pairs += VisiblePairsOf(rows, packed.windows);
    if (taps > 0) counts.convolved_pairs += ConvolvedPairsOf(rows, taps);
  }
  return counts;
}

}  // namespace longshort::models
