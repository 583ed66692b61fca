#include "core/cache/cache_grid.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

models::CachePages PagesForStreams(const models::LanguageModelInfo& info, int64_t streams) {
  return CacheGrid(info).PagesForSequence() * streams;
}

int64_t StreamsThatFit(const models::LanguageModelInfo& info, const models::CachePages& capacity) {
  const models::CachePages one = CacheGrid(info).PagesForSequence();
  return std::min({capacity.window / one.window, capacity.segment / one.segment, capacity.open_chunk / one.open_chunk});
}

absl::StatusOr<models::CachePages> PagesForBytes(const models::LanguageModelInfo& info, int64_t cache_bytes,
                                                 int64_t max_streams) {
  const models::CachePages& page_bytes = info.page_bytes;
  const CacheGrid grid(info);
  const models::CachePages full = grid.PagesForSequence();
  const int64_t whole_streams =
      std::max<int64_t>(0, cache_bytes - max_streams * page_bytes.open_chunk) / Bytes(full, page_bytes);
  const int64_t max_open_chunks = std::max<int64_t>(1, cache_bytes / 4 / page_bytes.open_chunk);
  models::CachePages pages{
      .window = 0, .segment = 0, .open_chunk = std::min(max_streams + whole_streams, max_open_chunks)};
  const int64_t left = std::max<int64_t>(0, cache_bytes - Bytes(pages, page_bytes));
  const int64_t together = full.window * page_bytes.window + full.segment * page_bytes.segment;
  const auto share = [&](int64_t count) { return left / together * count + left % together * count / together; };
  pages.window = share(full.window);
  pages.segment = share(full.segment);
  const models::CachePages min = grid.PagesForSequence(grid.block_tokens());
  if (!FitIn(min, pages)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache of ", cache_bytes, " bytes is too small: ", grid.block_tokens(), " tokens need ",
                     Bytes(min, page_bytes), " bytes; raise --cache-bytes (cache_bytes in serving.json)"));
  }
  return pages;
}

absl::Status CheckFitsAlone(int64_t max_tokens, const models::LanguageModelInfo& info,
                            const models::CachePages& capacity) {
  const models::CachePages need = CacheGrid(info).PagesForSequence(max_tokens);
  if (FitIn(need, capacity)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "a sequence of %d tokens needs %d bytes of cache (%d window pages, %d segment pages); the cache has %d "
      "(%d and %d)",
      max_tokens, Bytes(need, info.page_bytes), need.window, need.segment, Bytes(capacity, info.page_bytes),
      capacity.window, capacity.segment));
}

std::vector<MovingPage> PagesThatMove(const CacheGrid& grid, int64_t begin, int64_t position) {
  std::vector<MovingPage> pages;
  for (const Strip strip : kStrips) {
    const models::PageKind kind = strip == kWindowStrip ? models::PageKind::kWindow : models::PageKind::kSegment;
    const PageSpan kept = grid.KeptAt(strip, position);
    // A sequence begins at the beginning of a page, and before it is zero memory.
    for (int64_t page = std::max(kept.first, grid.Pages(strip, begin, begin).first); page < kept.end; ++page) {
      pages.push_back({.kind = kind, .strip = strip, .page = page, .rows = grid.RowsKeptAt(strip, position, page)});
    }
  }
  const int64_t open_rows = position % grid.chunk_size();
  if (open_rows > 0) pages.push_back({.kind = models::PageKind::kOpenChunk, .rows = {.first = 0, .end = open_rows}});
  return pages;
}

int64_t BytesThatMove(const CacheGrid& grid, const models::CachePages& page_bytes, int64_t begin, int64_t position) {
  int64_t bytes = 0;
  for (const MovingPage& page : PagesThatMove(grid, begin, position)) bytes += page_bytes.Of(page.kind);
  return bytes;
}

absl::Status CheckParkedPages(const CacheGrid& grid, const models::CachePages& page_bytes, const ParkedPages& pages,
                              int64_t tokens) {
  if (pages.position < 0 || pages.position >= tokens) {
    return absl::DataLossError(
        absl::StrCat("the session has ", tokens, " tokens, its cache has read ", pages.position));
  }
  if (!grid.IsExactFrom(pages.begin, pages.position)) {
    return absl::DataLossError(absl::StrCat("the session's cache begins at token ", pages.begin,
                                            ", which is not exact at position ", pages.position));
  }
  const int64_t bytes = BytesThatMove(grid, page_bytes, pages.begin, pages.position);
  if (bytes == static_cast<int64_t>(pages.contents.size())) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the session's cache has ", pages.contents.size(), " bytes; at position ",
                                          pages.position, " it must have ", bytes));
}

}  // namespace longshort::core
