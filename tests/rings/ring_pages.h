// The cache pages of one sequence, whose segments may begin anywhere, and the pages that a slice needs (Slice in
// models/model.h). The engine uses core/cache instead, whose pages can be shared.
//
// A sequence has three rings of pages and one page for its open chunk. Page n of a grid (rows n*P .. n*P+P-1) lies in
// ring[n mod ring size], so a page that no later query can see is written again. A ring is as long as one slice of n
// tokens needs (PageRange), wherever it lies on pages; k rows touch at most ceil((k-1)/P) + 1 pages:
//
//   window    the W-1 rows before the slice's first and its own: W-1 + n rows
//   memory    from chunk (s-M)/C to the last that the slice finishes: at most (M+L-1+n)/C*R vectors
//   segment   from chunk s/C: at most (L-1+n)/C*R vectors
//
//   ring of 3:    page of the grid   ... -1   0   1   2   3   4 ...
//                 page id             zero    a   b   c   a   b
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cache/cache_grid.h"
#include "models/model.h"
#include "tests/rings/ring_pools.h"

namespace longshort {

// How many pages each ring of a sequence has.
struct SequenceRings {
  int64_t window = 0;
  int64_t memory = 0;
  int64_t segment = 0;
};

// The rings of a sequence that reads at most `max_in_slice` tokens in a slice, and at most `max_tokens` in all: a
// short one never comes round, and needs less.
SequenceRings RingsForSequence(const models::LanguageModelInfo& info, int64_t max_in_slice,
                               int64_t max_tokens = core::kAnyNumberOfTokens);

// The same by kind of page: memory and segment vectors lie on segment pages.
models::CachePages PagesForRings(const models::LanguageModelInfo& info, int64_t max_in_slice,
                                 int64_t max_tokens = core::kAnyNumberOfTokens);

// Holds a sequence's pages from admission to its end; the destructor gives them back. Can be moved into place, not
// assigned.
//
// Thread: the one that owns the pools, which must outlive this.
class RingPages {
 public:
  // Takes all the pages that such a sequence (RingsForSequence) will ever need.
  // Errors: RESOURCE_EXHAUSTED; then nothing was taken.
  static absl::StatusOr<RingPages> Acquire(RingPools& pools, const models::LanguageModelInfo& info,
                                           int64_t max_in_slice, int64_t max_tokens = core::kAnyNumberOfTokens);
  RingPages(RingPages&&) noexcept = default;  // leaves the other without pages
  RingPages& operator=(RingPages&&) = delete;
  ~RingPages();

  // Fills in the three page ranges and the open chunk of a slice from its tokens.size(), position and segment_start.
  // The ranges stay valid until the next call, or until this is moved or destroyed.
  // REQUIRES: 1 to max_in_slice tokens; position + tokens.size() <= max_tokens; 0 <=
  // segment_start <= position < segment_start + L, and segment_start is a multiple of C.
  void FillIn(models::Slice& slice);

 private:
  // Pages used in turn, and the part of the grid that a slice was given last.
  struct Ring {
    // The pages that rows first_row .. end_row-1 of the grid lie on.
    models::PageRange Cover(int64_t page_rows, int64_t first_row, int64_t end_row);

    std::vector<models::PageId> pages;
    std::vector<models::PageId> range;
  };

  RingPages(RingPools& pools, const models::LanguageModelInfo& info);

  RingPools* pools_;
  int64_t chunk_size_;
  int64_t chunk_rank_;
  int64_t window_length_;
  int64_t memory_length_;
  int64_t rows_per_page_;
  Ring window_;
  Ring memory_;
  Ring segment_;
  std::vector<models::PageId> open_chunk_;  // one page; none once moved from
};

}  // namespace longshort
