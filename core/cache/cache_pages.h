// Numbers of pages of each kind: their arithmetic, and the numbers that fit a cache of a given size in bytes.
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

}  // namespace longshort::core
