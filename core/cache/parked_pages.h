// What a parked sequence has in the cache, as it goes from one cache to another: of another server, maybe.
//
// Which pages those are follows from where the sequence begins and stands, and so they need no names: one after the
// other, in the order of PagesThatMove. Pages of zero memory are not among them. Rows that no later query sees are
// zeros, so that nothing of other sequences goes along, and the same history always gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/cache/cache_grid.h"
#include "models/model.h"

namespace longshort::core {

// Names a parked sequence; never used twice, by another cache of the process neither.
using ParkedId = uint64_t;

// Where a sequence was parked: in the cache of which of an engine's workers. A hint, which may turn out void: the pages
// may have been given up, and the worker have another cache by now.
struct ParkedPlace {
  int worker = 0;
  ParkedId id = 0;
};

struct ParkedPages {
  // Where it began to be read: 0, or what CacheGrid::RecomputeFrom once gave.
  int64_t begin = 0;
  // Tokens that it has read.
  int64_t position = 0;
  // The bytes of its pages.
  std::string contents;
};

// Page `page` of a strip; or, of kind kOpenChunk, the one page of the chunk that is not full.
struct MovingPage {
  models::PageKind kind = models::PageKind::kWindow;
  Strip strip = kWindowStrip;
  int64_t page = 0;
  models::PageRows rows;  // what somebody may still see
};

// The pages of a sequence that was read from `begin` on and stands at `position`: those of the window, of the memory,
// of the segment, and that of the open chunk if it has rows.
std::vector<MovingPage> PagesThatMove(const CacheGrid& grid, int64_t begin, int64_t position);

// Bytes of all the pages that move.
int64_t BytesThatMove(const CacheGrid& grid, const models::CachePages& page_bytes, int64_t begin, int64_t position);

// Whether `pages` can be a sequence that read at most the first `tokens` - 1 tokens of a session: all but the last.
// Errors: DATA_LOSS naming what is not as it must be.
absl::Status CheckParkedPages(const CacheGrid& grid, const models::CachePages& page_bytes, const ParkedPages& pages,
                              int64_t tokens);

}  // namespace longshort::core
