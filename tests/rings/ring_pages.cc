#include "tests/rings/ring_pages.h"

#include <algorithm>

#include "base/status_macros.h"

namespace longshort {
namespace {

int64_t DivideRoundingUp(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

SequenceRings RingsForSequence(const models::LanguageModelInfo& info, int64_t max_in_slice, int64_t max_tokens) {
  const auto pages_for_vectors_of = [&info](int64_t tokens) {
    return DivideRoundingUp(tokens / info.chunk_size * info.chunk_rank, info.rows_per_page);
  };
  const int64_t tokens = std::min(max_tokens, core::kAnyNumberOfTokens), slice = std::min(max_in_slice, tokens);
  const int64_t window = DivideRoundingUp(info.window_length - 1 + slice - 1, info.rows_per_page) + 1;
  const int64_t memory = pages_for_vectors_of(info.memory_length + info.segment_length - 1 + slice) + 1;
  const int64_t segment = pages_for_vectors_of(info.segment_length - 1 + slice) + 1;
  return {.window = std::min(window, DivideRoundingUp(tokens, info.rows_per_page)),
          .memory = std::min(memory, pages_for_vectors_of(tokens)),
          .segment = std::min(segment, pages_for_vectors_of(tokens))};
}

models::CachePages PagesForRings(const models::LanguageModelInfo& info, int64_t max_in_slice, int64_t max_tokens) {
  const SequenceRings rings = RingsForSequence(info, max_in_slice, max_tokens);
  return {.window = rings.window, .segment = rings.memory + rings.segment, .open_chunk = 1};
}

RingPages::RingPages(RingPools& pools, const models::LanguageModelInfo& info)
    : pools_(&pools),
      chunk_size_(info.chunk_size),
      chunk_rank_(info.chunk_rank),
      window_length_(info.window_length),
      memory_length_(info.memory_length),
      rows_per_page_(info.rows_per_page) {}

absl::StatusOr<RingPages> RingPages::Acquire(RingPools& pools, const models::LanguageModelInfo& info,
                                             int64_t max_in_slice, int64_t max_tokens) {
  const SequenceRings rings = RingsForSequence(info, max_in_slice, max_tokens);
  RingPages pages(pools, info);  // on an error its destructor gives back what was taken so far
  LS_ASSIGN_OR_RETURN(pages.window_.pages, pools.window.Acquire(rings.window));
  LS_ASSIGN_OR_RETURN(pages.memory_.pages, pools.segment.Acquire(rings.memory));
  LS_ASSIGN_OR_RETURN(pages.segment_.pages, pools.segment.Acquire(rings.segment));
  LS_ASSIGN_OR_RETURN(pages.open_chunk_, pools.open_chunk.Acquire(1));
  return pages;
}

RingPages::~RingPages() {
  pools_->window.Release(window_.pages);
  pools_->segment.Release(memory_.pages);
  pools_->segment.Release(segment_.pages);
  pools_->open_chunk.Release(open_chunk_);
}

models::PageRange RingPages::Ring::Cover(int64_t page_rows, int64_t first_row, int64_t end_row) {
  const int64_t first_page =
      first_row >= 0 ? first_row / page_rows : -DivideRoundingUp(-first_row, page_rows);  // may lie before token 0
  range.clear();
  if (end_row > first_row) {
    for (int64_t page = first_page; page * page_rows < end_row; ++page) {
      range.push_back(page < 0 ? models::kZeroPage : pages[page % static_cast<int64_t>(pages.size())]);
    }
  }
  return {.first = first_page, .ids = range};
}

void RingPages::FillIn(models::Slice& slice) {
  const int64_t end = slice.position + static_cast<int64_t>(slice.tokens.size());
  const int64_t first_memory_chunk = (slice.segment_start - memory_length_) / chunk_size_;  // exact: C divides both
  const int64_t first_segment_chunk = slice.segment_start / chunk_size_;
  const int64_t end_chunk = end / chunk_size_;  // the chunks before it are finished when the slice has run
  slice.window_pages = window_.Cover(rows_per_page_, slice.position - window_length_ + 1, end);
  slice.memory_pages = memory_.Cover(rows_per_page_, first_memory_chunk * chunk_rank_, end_chunk * chunk_rank_);
  slice.segment_pages = segment_.Cover(rows_per_page_, first_segment_chunk * chunk_rank_, end_chunk * chunk_rank_);
  slice.open_chunk = open_chunk_.front();
}

}  // namespace longshort
