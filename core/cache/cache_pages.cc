#include "core/cache/cache_pages.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/cache/cache_grid.h"

namespace longshort::core {

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

}  // namespace longshort::core
