// Attention of the queries of a tile to the keys of a few pages: scores, running softmax, mixed values. Part of
// causal_attention_body.h, which decides which query sees which keys.
#pragma once

#include <cstdint>

#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/rows/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

using HalfRegister = uint16_t __attribute__((vector_size(kRegisterFloats * sizeof(uint16_t))));

static_assert(kPageRows == kLanes, "a page's keys fill one vector");
inline constexpr int64_t kPagesPerBlock = kBlock / kPageRows;
template <typename Element>
inline constexpr int64_t kColumnElements = kChannelsInPairs<Element> ? 2 : 1;  // from one distance to the next
template <typename Element>
inline constexpr auto kLine = static_cast<int64_t>(64 / sizeof(Element));  // elements in a cache line

// Not inlined: the loop needs all registers.
#define LS_ALONE __attribute__((noinline))
inline constexpr float kMinusInfinity = -__builtin_inff();

LS_INLINE void Load(const BFloat16* from, Register& to) {
  HalfRegister halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
  const IntRegister bits = __builtin_convertvector(halves, IntRegister) << 16;
  __builtin_memcpy(&to, &bits, sizeof(to));
}

// Loads part `part` of two Lanes. `second` begins `distance` after `first`. With kChannelsInPairs, both lie in
// the halves of the same 32-bit words.
LS_INLINE void LoadPair(const float* from, int64_t distance, int64_t part, Register& first, Register& second) {
  Load(from + part * kRegisterFloats, first);
  Load(from + distance + part * kRegisterFloats, second);
}
LS_INLINE void LoadPair(const BFloat16* from, int64_t /*distance*/, int64_t part, Register& first, Register& second) {
  IntRegister both;
  __builtin_memcpy(&both, from + 2 * part * kRegisterFloats, sizeof(both));
  const IntRegister low = both << 16, high = both & static_cast<int32_t>(0xffff0000);
  __builtin_memcpy(&first, &low, sizeof(first));
  __builtin_memcpy(&second, &high, sizeof(second));
}

// A range of keys of the grid, or of heads: begin .. end-1.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};
LS_INLINE int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// How many queries or pages, with `sums` sums of kLanes floats each, are processed at once: `all`, or `all` halved
// until the sums fit the registers, so that there is no remainder.
constexpr int64_t AtOnce(int64_t all, int64_t sums) {
  if (all * sums <= kSumsInRegisters) return all;
  return all % 2 == 0 ? AtOnce(all / 2, sums) : 1;
}

// Up to kQueriesPerTile queries of one head, and their running softmax.
struct Tile {
  float* content_queries = nullptr;   // [queries][even head_width]: for keys, and for positions of chunk vectors
  float* distance_queries = nullptr;  // [queries][even head_width]: for positions of the window
  float* mixed = nullptr;             // [queries][padded width]: sum of probabilities times values
  float* maximum = nullptr;           // [queries]
  float* sum = nullptr;               // [queries]
};

// A head's tile in the run's scratch.
template <typename Element>
LS_INLINE Tile TileOf(const AttentionRun<Element>& run, int64_t head) {
  const int64_t queries = kQueriesPerTile * EvenHeadWidth(run.head_width);
  Tile tile;
  tile.content_queries = run.scratch + head * AttentionScratchFloats(run.head_width, 1);
  tile.distance_queries = tile.content_queries + queries;
  tile.mixed = tile.distance_queries + queries;
  tile.maximum = tile.mixed + kQueriesPerTile * PaddedHeadWidth(run.head_width);
  tile.sum = tile.maximum + kQueriesPerTile;
  return tile;
}

// Addresses of a head's keys and values in the pages of a block. A call may use fewer pages.
template <typename Element>
struct SomePages {
  const Element* keys[kPagesPerBlock];
  const Element* values[kPagesPerBlock];
};

// Addresses of a head's keys and values in a page.
template <typename Element>
struct HeadPage {
  const Element* keys;
  const Element* values;
};

// Page `page` of the grid, of the first head.
template <typename Element>
LS_INLINE HeadPage<Element> FindPage(const KeyPages<Element>& pages, int64_t page) {
  // No query sees keys of a missing page: the zero page stands in for it, and its scores are dropped.
  const int64_t index = page - pages.first;
  const int64_t id = index >= 0 && index < pages.count ? pages.ids[index] : -1;
  const Element* const found = id < 0 ? pages.zero_page : pages.pages + id * pages.page_elements;
  return {found + pages.key_offset, found + pages.value_offset};
}

// Page `first` of the grid and the pages after it.
template <typename Element>
LS_INLINE SomePages<Element> FindPages(const KeyPages<Element>& pages, int64_t first) {
  SomePages<Element> found;
  for (int64_t i = 0; i < kPagesPerBlock; ++i) {
    const HeadPage<Element> page = FindPage(pages, first + i);
    found.keys[i] = page.keys;
    found.values[i] = page.values;
  }
  return found;
}

template <typename Element>
LS_INLINE SomePages<Element> HeadsFurther(SomePages<Element> pages, int64_t elements) {
  for (int64_t i = 0; i < kPagesPerBlock; ++i) {
    pages.keys[i] += elements;
    pages.values[i] += elements;
  }
  return pages;
}

// The pages that a single query reads next, and the distances of their keys.
template <typename Element>
struct NextKeys {
  SomePages<Element> pages;
  int64_t count = 0;
  const Element* distances = nullptr;
};

// Prefetches two channels of the next keys and distances; mixing values prefetches the others. A single query is
// memory-bound, and the hardware prefetcher cannot predict the next page.
template <typename Element>
LS_INLINE void PrefetchChannels(const NextKeys<Element>& next, int64_t channel, int64_t stride) {
  const Element* const distances = next.distances + channel * stride;
  constexpr int64_t kLines = 2 * kPageRows / kLine<Element>;
  LS_UNROLL
  for (int64_t i = 0; i < kPagesPerBlock; ++i) {
    if (i == next.count) break;
    LS_UNROLL
    for (int64_t line = 0; line < kLines; ++line) {
      __builtin_prefetch(next.pages.keys[i] + channel * kPageRows + line * kLine<Element>, 0, 2);
      __builtin_prefetch(distances + line * stride + i * kPageRows * kColumnElements<Element>, 0, 2);
    }
  }
}

// Scores (content and distance) of the window's keys of kPages pages, for kSome queries from `query` on, whose sums
// stay in registers. `table` is the head's table, with rows of `stride` elements; query q's distances begin at
// columns[q].
template <typename Element, int64_t kQueries, int64_t kSome, int64_t kPages>
LS_ALONE void SomeWindowScores(const Tile& tile, int64_t head_width, int64_t query, const SomePages<Element>& pages,
                               const NextKeys<Element>& next, const Element* table, int64_t stride,
                               const int64_t* columns, Lanes (&scores)[kQueries][kPages]) {
  const int64_t width = EvenHeadWidth(head_width);
  Lanes sums[kSome][kPages] = {};
  for (int64_t c = 0; c < width; c += 2) {
    if constexpr (kQueries == 1) PrefetchChannels(next, c, stride);
    LS_UNROLL
    for (int64_t p = 0; p < kParts; ++p) {
      Register keys[2][kPages];
      LS_UNROLL
      for (int64_t v = 0; v < kPages; ++v) {
        LoadPair(pages.keys[v] + c * kPageRows, kPageRows, p, keys[0][v], keys[1][v]);
      }
      LS_UNROLL
      for (int64_t q = 0; q < kSome; ++q) {
        const float* const content = tile.content_queries + (query + q) * width + c;
        const float* const distance = tile.distance_queries + (query + q) * width + c;
        const Element* const row = table + c * stride + columns[query + q] * kColumnElements<Element>;
        LS_UNROLL
        for (int64_t v = 0; v < kPages; ++v) {
          Register positions[2];
          LoadPair(row + v * kLanes * kColumnElements<Element>, stride, p, positions[0], positions[1]);
          LS_UNROLL
          for (int64_t i = 0; i < 2; ++i) {
            sums[q][v].part[p] += keys[i][v] * content[i];
            sums[q][v].part[p] += positions[i] * distance[i];
          }
        }
      }
    }
  }
  LS_UNROLL
  for (int64_t q = 0; q < kSome; ++q) {
    LS_UNROLL
    for (int64_t v = 0; v < kPages; ++v) scores[query + q][v] = sums[q][v];
  }
}

// Scores of the chunk vectors of kSomePages pages from `page` on, for kSome queries from `query` on, all of one chunk.
// Content and distance use the same query, so a key and its position are added once for all queries. The distances of
// the first page begin at `column`.
template <typename Element, int64_t kQueries, int64_t kSome, int64_t kPages, int64_t kSomePages>
LS_ALONE void SomeVectorScores(const Tile& tile, int64_t head_width, int64_t query, int64_t page,
                               const SomePages<Element>& pages, const NextKeys<Element>& next, const Element* table,
                               int64_t stride, int64_t column, Lanes (&scores)[kQueries][kPages]) {
  const int64_t width = EvenHeadWidth(head_width);
  const float* const queries = tile.content_queries + query * width;
  Lanes sums[kSome][kSomePages] = {};
  for (int64_t c = 0; c < width; c += 2) {
    if constexpr (kQueries == 1) PrefetchChannels(next, c, stride);
    const Element* const row = table + c * stride + (column + page * kPageRows) * kColumnElements<Element>;
    LS_UNROLL
    for (int64_t p = 0; p < kParts; ++p) {
      LS_UNROLL
      for (int64_t v = 0; v < kSomePages; ++v) {
        Register keys[2], positions[2];
        LoadPair(pages.keys[page + v] + c * kPageRows, kPageRows, p, keys[0], keys[1]);
        LoadPair(row + v * kPageRows * kColumnElements<Element>, stride, p, positions[0], positions[1]);
        LS_UNROLL
        for (int64_t i = 0; i < 2; ++i) {
          const Register both = keys[i] + positions[i];
          LS_UNROLL
          for (int64_t q = 0; q < kSome; ++q) sums[q][v].part[p] += both * queries[q * width + c + i];
        }
      }
    }
  }
  LS_UNROLL
  for (int64_t q = 0; q < kSome; ++q) {
    LS_UNROLL
    for (int64_t v = 0; v < kSomePages; ++v) scores[query + q][page + v] = sums[q][v];
  }
}

// The scores of all queries and pages.
template <typename Element, int64_t kQueries, int64_t kPages>
LS_INLINE void WindowScores(const Tile& tile, int64_t head_width, const SomePages<Element>& pages,
                            const NextKeys<Element>& next, const Element* table, int64_t stride, const int64_t* columns,
                            Lanes (&scores)[kQueries][kPages]) {
  constexpr int64_t kAtOnce = AtOnce(kQueries, kPages);
  for (int64_t query = 0; query < kQueries; query += kAtOnce) {
    SomeWindowScores<Element, kQueries, kAtOnce, kPages>(tile, head_width, query, pages, next, table, stride, columns,
                                                         scores);
  }
}
template <typename Element, int64_t kQueries, int64_t kPages>
LS_INLINE void VectorScores(const Tile& tile, int64_t head_width, const SomePages<Element>& pages,
                            const NextKeys<Element>& next, const Element* table, int64_t stride, const int64_t* columns,
                            Lanes (&scores)[kQueries][kPages]) {
  bool one_chunk = true;
  for (int64_t q = 1; q < kQueries; ++q) one_chunk = one_chunk && columns[q] == columns[0];
  if (!one_chunk) {
    for (int64_t q = 0; q < kQueries; ++q) {
      SomeVectorScores<Element, kQueries, 1, kPages, kPages>(tile, head_width, q, 0, pages, next, table, stride,
                                                             columns[q], scores);
    }
    return;
  }
  constexpr int64_t kSome = AtOnce(kQueries, 1), kSomePages = AtOnce(kPages, kSome);
  for (int64_t query = 0; query < kQueries; query += kSome) {
    for (int64_t page = 0; page < kPages; page += kSomePages) {
      SomeVectorScores<Element, kQueries, kSome, kPages, kSomePages>(tile, head_width, query, page, pages, next, table,
                                                                     stride, columns[0], scores);
    }
  }
}

// Turns the scores of keys `range` (in the pages' lanes) into probabilities relative to the new maximum, and the others
// into 0. Rescales the previous sum.
template <int64_t kPages>
LS_ALONE void FoldScores(Lanes (&scores)[kPages], const Range& range, float& maximum, float& sum, float& rescale) {
  const auto begin = static_cast<int32_t>(range.begin), end = static_cast<int32_t>(range.end);
  Lanes highest;
  for (int64_t v = 0; v < kPages; ++v) {
    const auto first = static_cast<int32_t>(v * kLanes);
    scores[v] = Between(begin - first, end - first, scores[v], kMinusInfinity);
    highest = v == 0 ? scores[v] : Larger(scores[v], highest);
  }
  const float block_maximum = Maximum(highest);
  const float new_maximum = block_maximum > maximum ? block_maximum : maximum;
  Register factor = Splat(maximum - new_maximum);
  Exponential(factor);
  rescale = maximum == kMinusInfinity ? 0.0f : factor[0];
  Lanes total = Lanes{};
  for (int64_t v = 0; v < kPages; ++v) {
    const auto first = static_cast<int32_t>(v * kLanes);
    Lanes probability = scores[v] - new_maximum;
    Exponential(probability);
    scores[v] = Between(begin - first, end - first, probability, 0.0f);
    total += scores[v];
  }
  maximum = new_maximum;
  sum = sum * rescale + Sum(total);
}

// Rescales the mixed values, and adds the probabilities times the values of rows `range`. For kGroup vectors of
// channels from `channel` on, and kSome queries from `query` on, whose sums stay in registers.
template <typename Element, int64_t kQueries, int64_t kSome, int64_t kPages, int64_t kGroup>
LS_ALONE void MixChannels(int64_t padded_width, int64_t channel, int64_t query, const SomePages<Element>& pages,
                          const NextKeys<Element>& next, const Range& range, const float* rescale,
                          const float (&weights)[kQueries][kPages * kPageRows], float* mixed) {
  Lanes sums[kSome][kGroup];
  LS_UNROLL
  for (int64_t q = 0; q < kSome; ++q) {
    LS_UNROLL
    for (int64_t v = 0; v < kGroup; ++v) {
      Load(mixed + (query + q) * padded_width + channel + v * kLanes, sums[q][v]);
      sums[q][v] = sums[q][v] * rescale[query + q];
    }
  }
  for (int64_t page = 0; page < kPages; ++page) {
    const int64_t page_begin = page * kPageRows, end = Min(range.end, page_begin + kPageRows);
    for (int64_t row = Max(range.begin, page_begin); row < end; ++row) {
      const int64_t place = (row - page_begin) * padded_width + channel;
      const Element* const from = pages.values[page] + place;
      if constexpr (kQueries == 1) {
        for (int64_t line = 0; line < kGroup * kLanes; line += kLine<Element>) {
          __builtin_prefetch(next.pages.values[page] + place + line, 0, 2);
        }
      }
      LS_UNROLL
      for (int64_t p = 0; p < kParts; ++p) {
        Register values[kGroup];
        if constexpr (kGroup == 1) {
          Load(from + p * kRegisterFloats, values[0]);
        } else {
          LS_UNROLL
          for (int64_t v = 0; v < kGroup; v += 2) LoadPair(from + v * kLanes, kLanes, p, values[v], values[v + 1]);
        }
        LS_UNROLL
        for (int64_t q = 0; q < kSome; ++q) {
          LS_UNROLL
          for (int64_t v = 0; v < kGroup; ++v) sums[q][v].part[p] += values[v] * weights[query + q][row];
        }
      }
    }
  }
  LS_UNROLL
  for (int64_t q = 0; q < kSome; ++q) {
    LS_UNROLL
    for (int64_t v = 0; v < kGroup; ++v) {
      Store(sums[q][v], mixed + (query + q) * padded_width + channel + v * kLanes);
    }
  }
}

// Mixes kGroup vectors of channels from `channel` on, for as many queries at once as fit the registers.
template <typename Element, int64_t kQueries, int64_t kPages, int64_t kGroup>
LS_INLINE void MixGroup(int64_t padded_width, int64_t channel, const SomePages<Element>& pages,
                        const NextKeys<Element>& next, const Range& range, const float* rescale,
                        const float (&weights)[kQueries][kPages * kPageRows], float* mixed) {
  constexpr int64_t kAtOnce = AtOnce(kQueries, kGroup);
  for (int64_t query = 0; query < kQueries; query += kAtOnce) {
    MixChannels<Element, kQueries, kAtOnce, kPages, kGroup>(padded_width, channel, query, pages, next, range, rescale,
                                                            weights, mixed);
  }
}

template <typename Element, int64_t kQueries, int64_t kPages>
LS_INLINE void MixValues(const Tile& tile, int64_t padded_width, const SomePages<Element>& pages,
                         const NextKeys<Element>& next, const Range& range, const float* rescale,
                         const Lanes (&probabilities)[kQueries][kPages]) {
  float weights[kQueries][kPages * kPageRows];
  __builtin_memcpy(weights, probabilities, sizeof(weights));
  int64_t channel = 0;
  // Two queries per load are better than many channels at once.
  if constexpr (kQueries == 1 || AtOnce(kQueries, 4) > 1) {
    for (; channel + 4 * kLanes <= padded_width; channel += 4 * kLanes) {
      MixGroup<Element, kQueries, kPages, 4>(padded_width, channel, pages, next, range, rescale, weights, tile.mixed);
    }
  }
  for (; channel + 2 * kLanes <= padded_width; channel += 2 * kLanes) {
    MixGroup<Element, kQueries, kPages, 2>(padded_width, channel, pages, next, range, rescale, weights, tile.mixed);
  }
  for (; channel < padded_width; channel += kLanes) {
    MixGroup<Element, kQueries, kPages, 1>(padded_width, channel, pages, next, range, rescale, weights, tile.mixed);
  }
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
