// Numbers of pages of each kind: arithmetic with them, and how many a cache of so many bytes has.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"

namespace longshort::core {

// The larger number of each kind.
inline models::CachePages Larger(const models::CachePages& a, const models::CachePages& b) {
  return {std::max(a.window, b.window), std::max(a.segment, b.segment), std::max(a.open_chunk, b.open_chunk)};
}

// The smaller number of each kind.
inline models::CachePages Smaller(const models::CachePages& a, const models::CachePages& b) {
  return {std::min(a.window, b.window), std::min(a.segment, b.segment), std::min(a.open_chunk, b.open_chunk)};
}

// Whether there are at least as many of each kind in `room`.
inline bool FitIn(const models::CachePages& pages, const models::CachePages& room) {
  return pages.window <= room.window && pages.segment <= room.segment && pages.open_chunk <= room.open_chunk;
}

inline int64_t Bytes(const models::CachePages& pages, const models::CachePages& page_bytes) {
  return pages.window * page_bytes.window + pages.segment * page_bytes.segment +
         pages.open_chunk * page_bytes.open_chunk;
}

// Every running sequence needs an open-chunk page, however short it is, and every parked one keeps its own. So there is
// one for each of `max_streams` and one more for each sequence whose full memory fits in the rest; if that were more
// than a quarter of the bytes, they get a quarter. The rest is split between window and segment pages as a sequence of
// full memory needs them: long streams then use both up at once, and short ones run out of window pages first, having
// left segment pages for the prefix index.
//
// Errors: INVALID_ARGUMENT if there is not a page of each kind, naming the bytes that one sequence of a block needs.
absl::StatusOr<models::CachePages> PagesForBytes(const models::LanguageModelInfo& info, int64_t cache_bytes,
                                                 int64_t max_streams);

// What `streams` sequences of any length need.
models::CachePages PagesForStreams(const models::LanguageModelInfo& info, int64_t streams);

// How many sequences of any length can run at once in a cache of `capacity` pages.
int64_t StreamsThatFit(const models::LanguageModelInfo& info, const models::CachePages& capacity);

// Whether a sequence of at most `max_tokens` tokens could run if it were alone in a cache of `capacity` pages.
// Errors: RESOURCE_EXHAUSTED naming the bytes it needs and those there are.
absl::Status CheckFitsAlone(int64_t max_tokens, const models::LanguageModelInfo& info,
                            const models::CachePages& capacity);

}  // namespace longshort::core
