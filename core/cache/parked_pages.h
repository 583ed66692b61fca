// The pages of a parked sequence in transit from one cache to another, possibly on another server.
//
// The begin and the position of a sequence determine its pages, so the format does not name them: they follow one
// another in the order of PagesThatMove. Pages of zero memory are left out. Rows that no later query sees are zeros,
// so that no data of other sequences leaves the cache, and the same history always gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/cache/cache_grid.h"
#include "models/model.h"

namespace longshort::core {

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
