// Where the rows of a sequence lie on pages, and which of them it needs. Arithmetic only; nothing here holds a page.
//
// A sequence's rows lie on three strips of pages, of P rows each (models/model.h):
//
//   window    row t is token t
//   memory    vector j = chunk*R + t of finished chunks, as later segments see it (form B)
//   segment   the same vectors as the chunk's own segment sees them (form A)
//
// A block is the least number of tokens that ends both a page of the window and a chunk: P for every C that divides
// P. What a sequence keeps is counted from the beginning of its present block, so that another can begin
// there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "models/model.h"

namespace longshort::core {

enum Strip : size_t { kWindowStrip, kMemoryStrip, kSegmentStrip };
inline constexpr std::array<Strip, 3> kStrips = {kWindowStrip, kMemoryStrip, kSegmentStrip};

// Pages first .. end-1 of a strip. Pages below 0 are zero memory.
struct PageSpan {
  int64_t first = 0;
  int64_t end = 0;
};

// More tokens than any stream has.
inline constexpr int64_t kAnyNumberOfTokens = int64_t{1} << 40;

class CacheGrid final {
 public:
  explicit CacheGrid(const models::LanguageModelInfo& info);

  int64_t chunk_size() const { return chunk_size_; }
  int64_t block_tokens() const { return block_tokens_; }
  int64_t BlockBegin(int64_t position) const { return position / block_tokens_ * block_tokens_; }
  int64_t SegmentStart(int64_t position) const { return position / segment_length_ * segment_length_; }

  // The pages that the rows of tokens from .. to-1 lie on (of vectors: of the chunks that end among them).
  PageSpan Pages(Strip strip, int64_t from, int64_t to) const;
  // What a sequence that has read `position` tokens keeps.
  PageSpan KeptAt(Strip strip, int64_t position) const;
  // The rows of `page` that somebody may still see there: of those kept pages, what a query at the begin of the present
  // block or later sees.
  models::PageRows RowsKeptAt(Strip strip, int64_t position, int64_t page) const;
  // Tokens before the end of what was read, from which others may still begin though all else has gone: half a window,
  // which makes half as many window pages more.
  int64_t ForkRoom() const { return window_length_ / 2; }
  // Whether the last page before `position` has rows of later tokens too.
  bool EndsInsidePage(Strip strip, int64_t position) const;

  // What a sequence of at most `max_tokens` tokens needs at once at the most, when it reads no further than to the end
  // of its present block in a step.
  models::CachePages PagesForSequence(int64_t max_tokens = kAnyNumberOfTokens) const;

  // Where to begin reading so that, back at `position`, everything that a query sees there is exact: n_layer*(M+L)
  // tokens before it, or a little more, so that segments, chunks and pages begin there too; 0 if there are no more.
  int64_t RecomputeFrom(int64_t position) const;
  // Whether a sequence that began to be read at `begin` may have, and exactly, what a query at `position` sees.
  bool IsExactFrom(int64_t begin, int64_t position) const;

 private:
  int64_t FirstRow(Strip strip, int64_t token) const;
  // The first token whose rows on a strip are kept; below 0 for zero memory.
  int64_t KeptFrom(Strip strip, int64_t position) const;
  // What every begin but 0 is a multiple of.
  int64_t BeginUnit() const;

  int64_t layers_;
  int64_t chunk_size_;
  int64_t chunk_rank_;
  int64_t window_length_;
  int64_t memory_length_;
  int64_t segment_length_;
  int64_t rows_per_page_;
  int64_t block_tokens_;
};

}  // namespace longshort::core
