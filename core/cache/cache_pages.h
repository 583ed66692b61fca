// Arithmetic with numbers of pages of each kind.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/model.h"

namespace longshort {

inline CachePages operator+(const CachePages& a, const CachePages& b) {
  return {a.window + b.window, a.segment + b.segment, a.open_chunk + b.open_chunk};
}
inline CachePages operator-(const CachePages& a, const CachePages& b) {
  return {a.window - b.window, a.segment - b.segment, a.open_chunk - b.open_chunk};
}
inline CachePages operator*(const CachePages& pages, int64_t times) {
  return {pages.window * times, pages.segment * times, pages.open_chunk * times};
}

// The larger number of each kind.
inline CachePages Larger(const CachePages& a, const CachePages& b) {
  return {std::max(a.window, b.window), std::max(a.segment, b.segment), std::max(a.open_chunk, b.open_chunk)};
}

// The smaller number of each kind.
inline CachePages Smaller(const CachePages& a, const CachePages& b) {
  return {std::min(a.window, b.window), std::min(a.segment, b.segment), std::min(a.open_chunk, b.open_chunk)};
}

// Whether there are at least as many of each kind in `room`.
inline bool FitIn(const CachePages& pages, const CachePages& room) {
  return pages.window <= room.window && pages.segment <= room.segment && pages.open_chunk <= room.open_chunk;
}

inline int64_t Bytes(const CachePages& pages, const CachePages& page_bytes) {
  return pages.window * page_bytes.window + pages.segment * page_bytes.segment +
         pages.open_chunk * page_bytes.open_chunk;
}

}  // namespace longshort
