#include "core/cache/parked_pages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace longshort::core {

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
