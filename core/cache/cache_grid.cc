#include "core/cache/cache_grid.h"

#include <algorithm>
#include <numeric>

namespace longshort::core {
namespace {

int64_t DivideRoundingUp(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

int64_t FloorDivide(int64_t value, int64_t divisor) {
  return value >= 0 ? value / divisor : -DivideRoundingUp(-value, divisor);
}

}  // namespace

CacheGrid::CacheGrid(const models::LanguageModelInfo& info)
    : layers_(info.layers),
      chunk_size_(info.chunk_size),
      chunk_rank_(info.chunk_rank),
      window_length_(info.window_length),
      memory_length_(info.memory_length),
      segment_length_(info.segment_length),
      rows_per_page_(info.rows_per_page),
      block_tokens_(std::lcm(rows_per_page_, info.chunk_size)) {}

int64_t CacheGrid::FirstRow(Strip strip, int64_t token) const {
  return strip == kWindowStrip ? token : FloorDivide(token, chunk_size_) * chunk_rank_;
}

PageSpan CacheGrid::Pages(Strip strip, int64_t from, int64_t to) const {
  const int64_t first_row = FirstRow(strip, from);
  const int64_t end_row = FirstRow(strip, to);
  const int64_t first = FloorDivide(first_row, rows_per_page_);
  return {.first = first, .end = end_row > first_row ? FloorDivide(end_row - 1, rows_per_page_) + 1 : first};
}

int64_t CacheGrid::KeptFrom(Strip strip, int64_t position) const {
  const int64_t block = BlockBegin(position);
  switch (strip) {
    case kWindowStrip:
      return block - window_length_ + 1;
    case kMemoryStrip:
      return SegmentStart(block) - memory_length_;
    case kSegmentStrip:
      break;
  }
  return SegmentStart(block);
}

PageSpan CacheGrid::KeptAt(Strip strip, int64_t position) const {
  return Pages(strip, KeptFrom(strip, position), position);
}

models::PageRows CacheGrid::RowsKeptAt(Strip strip, int64_t position, int64_t page) const {
  const auto place_on_page = [this, page](int64_t row) {
    return std::clamp<int64_t>(row - page * rows_per_page_, 0, rows_per_page_);
  };
  return {.first = place_on_page(FirstRow(strip, KeptFrom(strip, position))),
          .end = place_on_page(FirstRow(strip, position))};
}

bool CacheGrid::EndsInsidePage(Strip strip, int64_t position) const {
  return FirstRow(strip, position) % rows_per_page_ != 0;
}

models::CachePages CacheGrid::PagesForSequence(int64_t max_tokens) const {
  // The maximum number of pages for the vectors of `tokens` tokens, if the number of tokens before them is a multiple
  // of `unit`.
  const auto pages_for_vectors_of = [this](int64_t tokens, int64_t unit) {
    const int64_t max_before = rows_per_page_ - std::gcd(FirstRow(kMemoryStrip, unit), rows_per_page_);
    return DivideRoundingUp(max_before + FirstRow(kMemoryStrip, tokens), rows_per_page_);
  };
  const int64_t tokens = std::min(max_tokens, kAnyNumberOfTokens);
  // The maximum number of tokens from the start of a segment to the end of a block with one of its tokens.
  const int64_t segment_tokens = segment_length_ - std::gcd(segment_length_, block_tokens_) + block_tokens_;
  const int64_t window = DivideRoundingUp(window_length_ - 1, rows_per_page_) + block_tokens_ / rows_per_page_;
  const int64_t memory =
      pages_for_vectors_of(memory_length_ + segment_tokens, std::gcd(memory_length_, segment_length_));
  const int64_t segment = pages_for_vectors_of(segment_tokens, segment_length_);
  const int64_t all = DivideRoundingUp(FirstRow(kMemoryStrip, tokens), rows_per_page_);
  return {.window = std::min(window, DivideRoundingUp(tokens, rows_per_page_)),
          .segment = std::min(memory, all) + std::min(segment, all),
          .open_chunk = 1};
}

int64_t CacheGrid::BeginUnit() const {
  const int64_t page_of_vectors = chunk_size_ * (rows_per_page_ / std::gcd(rows_per_page_, chunk_rank_));
  return std::lcm(std::lcm(segment_length_, block_tokens_), page_of_vectors);
}

int64_t CacheGrid::RecomputeFrom(int64_t position) const {
  const int64_t unit = BeginUnit();
  const int64_t history = layers_ * (memory_length_ + segment_length_);
  return std::max<int64_t>(0, position - history) / unit * unit;
}

bool CacheGrid::IsExactFrom(int64_t begin, int64_t position) const {
  return begin >= 0 && begin <= RecomputeFrom(position) && begin % BeginUnit() == 0;
}

}  // namespace longshort::core
