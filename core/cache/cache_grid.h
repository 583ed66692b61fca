// Which pages the rows of a sequence are on, which of them it needs, and how many pages of each kind fit a cache.
// Arithmetic only; owns no pages. Also the pages of a parked sequence while it moves to another cache.
//
// A sequence's rows lie on three strips of pages, of P rows each (models/model.h):
//
//   window    row t is token t
//   memory    vector j = chunk*R + t of finished chunks, as later segments see it (form B)
//   segment   the same vectors as the chunk's own segment sees them (form A)
//
// A block is the smallest number of tokens that ends both a page of the window and a chunk: P for every C that divides
// P. The kept rows are counted from the beginning of the sequence's current block, so that another sequence can begin
// there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"

namespace longshort::core {

enum Strip : size_t { kWindowStrip, kMemoryStrip, kSegmentStrip };
inline constexpr std::array<Strip, 3> kStrips = {kWindowStrip, kMemoryStrip, kSegmentStrip};

// Pages first .. end-1 of a strip. Pages below 0 are zero memory.
struct PageSpan {
  int64_t first = 0;
  int64_t end = 0;
};

// More tokens than any stream can have.
inline constexpr int64_t kAnyNumberOfTokens = int64_t{1} << 40;

class CacheGrid final {
 public:
  explicit CacheGrid(const models::LanguageModelInfo& info);

  int64_t chunk_size() const { return chunk_size_; }
  int64_t block_tokens() const { return block_tokens_; }
  int64_t BlockBegin(int64_t position) const { return position / block_tokens_ * block_tokens_; }
  int64_t SegmentStart(int64_t position) const { return position / segment_length_ * segment_length_; }

  // The pages with the rows of tokens from .. to-1 (vectors: of the chunks that end among them).
  PageSpan Pages(Strip strip, int64_t from, int64_t to) const;
  // The pages that a sequence at `position` keeps.
  PageSpan KeptAt(Strip strip, int64_t position) const;
  // The rows of a kept page that a later query may see: those that a query at the beginning of the current block or
  // later sees.
  models::PageRows RowsKeptAt(Strip strip, int64_t position, int64_t page) const;
  // How many tokens before its end another sequence can still begin when all spare pages are evicted: half a window,
  // which takes half as many additional window pages.
  int64_t ForkRoom() const { return window_length_ / 2; }
  // Whether the last page before `position` also has rows of later tokens.
  bool EndsInsidePage(Strip strip, int64_t position) const;

  // The maximum number of pages that a sequence of at most `max_tokens` tokens needs at once, if no step reads beyond
  // the end of its current block.
  models::CachePages PagesForSequence(int64_t max_tokens = kAnyNumberOfTokens) const;

  // Where to begin reading so that everything that a query at `position` sees is exact: n_layer*(M+L) tokens before it,
  // or a little more, so that segments, chunks and pages also begin there; 0 if the stream is shorter.
  int64_t RecomputeFrom(int64_t position) const;
  // Whether a sequence that was read starting at `begin` can have, exactly, everything that a query at `position` sees.
  bool IsExactFrom(int64_t begin, int64_t position) const;

 private:
  int64_t FirstRow(Strip strip, int64_t token) const;
  // The first token whose rows on a strip are kept; below 0 for zero memory.
  int64_t KeptFrom(Strip strip, int64_t position) const;
  // Every begin except 0 is a multiple of this.
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

// The larger number of each kind.
inline models::CachePages Larger(const models::CachePages& a, const models::CachePages& b) {
  return {std::max(a.window, b.window), std::max(a.segment, b.segment), std::max(a.open_chunk, b.open_chunk)};
}

// The smaller number of each kind.
inline models::CachePages Smaller(const models::CachePages& a, const models::CachePages& b) {
  return {std::min(a.window, b.window), std::min(a.segment, b.segment), std::min(a.open_chunk, b.open_chunk)};
}

// Whether `room` has at least as many pages of each kind.
inline bool FitIn(const models::CachePages& pages, const models::CachePages& room) {
  return pages.window <= room.window && pages.segment <= room.segment && pages.open_chunk <= room.open_chunk;
}

inline int64_t Bytes(const models::CachePages& pages, const models::CachePages& page_bytes) {
  return pages.window * page_bytes.window + pages.segment * page_bytes.segment +
         pages.open_chunk * page_bytes.open_chunk;
}

// Divides a cache into kinds of pages. Every running sequence needs an open-chunk page, however short it is, and every
// parked one keeps its own. So there is one for each of `max_streams`, and one for each sequence of full memory that
// fits the rest, but open-chunk pages take at most a quarter of the bytes. Window and segment pages share the rest in
// the ratio of a sequence of full memory: then long streams use up both at once, and short ones run out of window pages
// first, which leaves segment pages for the prefix index.
//
// Errors: INVALID_ARGUMENT unless there is a page of each kind, naming the bytes that a sequence of one block needs.
absl::StatusOr<models::CachePages> PagesForBytes(const models::LanguageModelInfo& info, int64_t cache_bytes,
                                                 int64_t max_streams);

// The pages that `streams` sequences of any length need.
models::CachePages PagesForStreams(const models::LanguageModelInfo& info, int64_t streams);

// The number of sequences of any length that can run at once in a cache of `capacity` pages.
int64_t StreamsThatFit(const models::LanguageModelInfo& info, const models::CachePages& capacity);

// Whether a sequence of at most `max_tokens` tokens could run alone in a cache of `capacity` pages.
// Errors: RESOURCE_EXHAUSTED naming the needed and the available bytes.
absl::Status CheckFitsAlone(int64_t max_tokens, const models::LanguageModelInfo& info,
                            const models::CachePages& capacity);

// --- the pages of a parked sequence in transit from one cache to another, possibly on another server ---
//
// The begin and the position of a sequence determine its pages, so the format does not name them: they follow one
// another in the order of PagesThatMove. Pages of zero memory are left out. Rows that no later query sees are zeros,
// so that no data of other sequences leaves the cache, and the same history always gives the same bytes.

// Identifies a parked sequence; unique among all caches of the process.
using ParkedId = uint64_t;

// The worker whose cache a sequence is parked in, and its id there. A hint, which may be stale: the pages may have been
// evicted, or the worker may have another cache.
struct ParkedPlace {
  int worker = 0;
  ParkedId id = 0;
};

struct ParkedPages {
  // Where its reading began: 0, or a result of CacheGrid::RecomputeFrom.
  int64_t begin = 0;
  // Tokens that it has read.
  int64_t position = 0;
  // The bytes of its pages.
  std::string contents;
};

// Page `page` of a strip; for kOpenChunk, the page of the chunk that is not full.
struct MovingPage {
  models::PageKind kind = models::PageKind::kWindow;
  Strip strip = kWindowStrip;
  int64_t page = 0;
  models::PageRows rows;  // that a later query may see
};

// The pages of a sequence that was read starting at `begin` and is at `position`: the pages of the window, of the
// memory and of the segment, and the open-chunk page if it has rows.
std::vector<MovingPage> PagesThatMove(const CacheGrid& grid, int64_t begin, int64_t position);

// The size of all these pages in bytes.
int64_t BytesThatMove(const CacheGrid& grid, const models::CachePages& page_bytes, int64_t begin, int64_t position);

// Whether `pages` can be a sequence that read at most the first `tokens` - 1 tokens of a session: all except the last.
// Errors: DATA_LOSS naming what is invalid.
absl::Status CheckParkedPages(const CacheGrid& grid, const models::CachePages& page_bytes, const ParkedPages& pages,
                              int64_t tokens);

}  // namespace longshort::core
