// The tables from the strips of one sequence to its pages, and the pools of the pages.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/cache/cache_grid.h"
#include "core/cache/page_pool.h"
#include "models/model.h"

namespace longshort::core {

// Page `first + i` of a strip is ids[i]; kZeroPage before the sequence's first token.
struct PageTable {
  int64_t first = 0;
  std::vector<models::PageId> ids;

  int64_t end() const { return first + static_cast<int64_t>(ids.size()); }
  models::PageId At(int64_t page) const { return ids[page - first]; }
  models::PageRange Range() const { return {.first = first, .ids = ids}; }
};

// Indexed by Strip.
using PageTables = std::array<PageTable, kStrips.size()>;

// The tables of a sequence that begins at `position`: only zero memory.
inline PageTables ZeroTables(const CacheGrid& grid, int64_t position) {
  PageTables tables;
  for (const Strip strip : kStrips) {
    const PageSpan span = grid.KeptAt(strip, position);
    tables[strip] = {.first = span.first, .ids = std::vector<models::PageId>(span.end - span.first, models::kZeroPage)};
  }
  return tables;
}

// The pools of a cache, one for each kind of page. Memory and segment vectors are on segment pages.
struct CachePools {
  explicit CachePools(const models::CachePages& capacity)
      : window("window", capacity.window, clock),
        segment("segment", capacity.segment, clock),
        open_chunk("open chunk", capacity.open_chunk, clock) {}

  PagePool& Of(Strip strip) { return strip == kWindowStrip ? window : segment; }
  const PagePool& Of(Strip strip) const { return strip == kWindowStrip ? window : segment; }

  UseClock clock;
  PagePool window;
  PagePool segment;
  PagePool open_chunk;
};

}  // namespace longshort::core
