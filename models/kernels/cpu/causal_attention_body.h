// The body of causal_attention.h, compiled once for each instruction set (LONGSHORT_INSTRUCTION_SET names the
// namespace). Nothing but builtins, intrinsics and plain loops: an inline function of a library, compiled here for
// AVX-512, could be the one that the linker keeps for every processor.
#pragma once

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include <cstdint>

#include "models/kernels/cpu/causal_attention.h"
#include "models/kernels/cpu/lanes_body.h"

namespace longshort::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

using HalfLanes = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

inline constexpr int64_t kVectors = kBlock / kLanes;         // vectors of lanes in a block
inline constexpr int64_t kPageVectors = kPageRows / kLanes;  // and in a page
inline constexpr int64_t kPagesPerBlock = kBlock / kPageRows;
inline constexpr float kMinusInfinity = -__builtin_inff();

LS_INLINE void Load(const BFloat16* from, Lanes& to) {
#ifdef __AVX512F__
  // g++ widens a vector in two halves and puts them together, which takes a fifth of the kernel's time.
  // (With a mask of all lanes, because it warns of an uninitialised variable in its own header otherwise.)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const IntLanes bits = IntLanes(_mm512_maskz_cvtepu16_epi32(0xffff, halves)) << 16;
#else
  HalfLanes halves;
  __builtin_memcpy(&halves, from, sizeof(halves));
  const IntLanes bits = __builtin_convertvector(halves, IntLanes) << 16;
#endif
  __builtin_memcpy(&to, &bits, sizeof(to));
}

// Keys of the grid, or heads: begin .. end-1.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};
LS_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
LS_INLINE int64_t Greatest(int64_t a, int64_t b) { return a > b ? a : b; }
LS_INLINE int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// Up to kQueriesPerTile queries of one head, and their softmax so far.
struct Tile {
  float* content_queries = nullptr;   // [queries][head_width]: what meets keys
  float* distance_queries = nullptr;  // [queries][head_width]: what meets positions
  float* mixed = nullptr;             // [queries][padded width]: sum of probabilities times values
  float* maximum = nullptr;           // [queries]
  float* sum = nullptr;               // [queries]
};

// The place of a head's tile in the run's scratch.
template <typename Element>
LS_INLINE Tile TileOf(const AttentionRun<Element>& run, int64_t head) {
  const int64_t queries = kQueriesPerTile * run.head_width;
  Tile tile;
  tile.content_queries = run.scratch + head * AttentionScratchFloats(run.head_width, 1);
  tile.distance_queries = tile.content_queries + queries;
  tile.mixed = tile.distance_queries + queries;
  tile.maximum = tile.mixed + kQueriesPerTile * PaddedHeadWidth(run.head_width);
  tile.sum = tile.maximum + kQueriesPerTile;
  return tile;
}

// Where a head's keys and values of a block's pages lie.
template <typename Element>
struct PagesOfBlock {
  const Element* keys[kPagesPerBlock];
  const Element* values[kPagesPerBlock];
};

template <typename Element>
LS_INLINE PagesOfBlock<Element> FindPages(const KeyPages<Element>& pages, int64_t block) {
  PagesOfBlock<Element> found;
  for (int64_t i = 0; i < kPagesPerBlock; ++i) {
    // No query sees keys of a page that is not there: the zero page's scores are dropped.
    const int64_t index = block * kPagesPerBlock + i - pages.first;
    const int32_t id = index >= 0 && index < pages.count ? pages.ids[index] : -1;
    const Element* const page = id < 0 ? pages.zero_page : pages.pages + id * pages.page_elements;
    found.keys[i] = page + pages.key_offset;
    found.values[i] = page + pages.value_offset;
  }
  return found;
}

template <typename Element>
LS_INLINE PagesOfBlock<Element> HeadsFurther(PagesOfBlock<Element> pages, int64_t elements) {
  for (int64_t i = 0; i < kPagesPerBlock; ++i) {
    pages.keys[i] += elements;
    pages.values[i] += elements;
  }
  return pages;
}

// Asks for channel `channel` of the keys that come next, as much of their values, and the distances they meet. A single
// query computes less than its memory takes to come, and pages lie anywhere, so the processor does not guess the next
// one.
template <typename Element>
LS_INLINE void Prefetch(const PagesOfBlock<Element>& next, const Element* next_distances, int64_t channel) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(Element));
  const int64_t offset = channel * kPageRows;
  if (offset % kLine == 0) {
    for (int64_t i = 0; i < kPagesPerBlock; ++i) {
      __builtin_prefetch(next.keys[i] + offset, 0, 2);
      __builtin_prefetch(next.values[i] + offset, 0, 2);
    }
  }
  for (int64_t column = 0; column < kBlock; column += kLine) __builtin_prefetch(next_distances + column, 0, 2);
}

// Scores of one block: content and distance. `table` is the head's; `columns[q]` is where query q's distances begin in
// its rows, `stride` elements each. `next` and `next_distances` are what a single query reads after this.
template <typename Element, int64_t kQueries>
LS_INLINE void BlockScores(const Tile& tile, int64_t head_width, const PagesOfBlock<Element>& pages,
                           const PagesOfBlock<Element>& next, const Element* table, int64_t stride,
                           const int64_t* columns, const Element* next_distances, Lanes (&scores)[kQueries][kVectors]) {
  for (int64_t q = 0; q < kQueries; ++q) {
    for (int64_t v = 0; v < kVectors; ++v) scores[q][v] = Lanes{};
  }
  for (int64_t c = 0; c < head_width; ++c) {
    if constexpr (kQueries == 1) Prefetch(next, next_distances + c * stride, c);
    Lanes key[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) {
      Load(pages.keys[v / kPageVectors] + c * kPageRows + v % kPageVectors * kLanes, key[v]);
    }
    for (int64_t q = 0; q < kQueries; ++q) {
      const float content = tile.content_queries[q * head_width + c];
      const float distance = tile.distance_queries[q * head_width + c];
      const Element* const row = table + c * stride + columns[q];
      for (int64_t v = 0; v < kVectors; ++v) {
        Lanes position;
        Load(row + v * kLanes, position);
        scores[q][v] += key[v] * content;
        scores[q][v] += position * distance;
      }
    }
  }
}

// Turns the scores of keys `range` (in the block's lanes) into probabilities relative to the new maximum, the rest into
// 0, and scales what was summed before.
LS_INLINE void FoldScores(Lanes (&scores)[kVectors], const Range& range, float& maximum, float& sum, float& rescale) {
  IntLanes lane;
  for (int64_t i = 0; i < kLanes; ++i) lane[i] = static_cast<int32_t>(i);
  const auto begin = static_cast<int32_t>(range.begin), end = static_cast<int32_t>(range.end);
  Lanes highest = Lanes{} + kMinusInfinity;
  for (int64_t v = 0; v < kVectors; ++v) {
    const IntLanes index = lane + static_cast<int32_t>(v * kLanes);
    scores[v] = ((index >= begin) & (index < end)) ? scores[v] : Lanes{} + kMinusInfinity;
    highest = scores[v] > highest ? scores[v] : highest;
  }
  const float block_maximum = Maximum(highest);
  const float new_maximum = block_maximum > maximum ? block_maximum : maximum;
  Lanes factor = Lanes{} + (maximum - new_maximum);
  Exponential(factor);
  rescale = maximum == kMinusInfinity ? 0.0f : factor[0];
  Lanes total = Lanes{};
  for (int64_t v = 0; v < kVectors; ++v) {
    const IntLanes index = lane + static_cast<int32_t>(v * kLanes);
    Lanes probability = scores[v] - new_maximum;
    Exponential(probability);
    scores[v] = ((index >= begin) & (index < end)) ? probability : Lanes{};
    total += scores[v];
  }
  maximum = new_maximum;
  sum = sum * rescale + Sum(total);
}

// Adds probabilities times values of rows `range` to what was mixed before, scaled, for kGroup vectors of channels that
// stay in registers, `channel` on.
template <typename Element, int64_t kQueries, int64_t kGroup>
LS_INLINE void MixChannels(int64_t padded_width, int64_t channel, const PagesOfBlock<Element>& pages,
                           const Range& range, const float* rescale, const float (&weights)[kQueries][kBlock],
                           float* mixed) {
  Lanes sums[kQueries][kGroup];
  for (int64_t q = 0; q < kQueries; ++q) {
    for (int64_t v = 0; v < kGroup; ++v) {
      Load(mixed + q * padded_width + channel + v * kLanes, sums[q][v]);
      sums[q][v] *= rescale[q];
    }
  }
  for (int64_t page = 0; page < kPagesPerBlock; ++page) {
    const int64_t page_begin = page * kPageRows, end = Least(range.end, page_begin + kPageRows);
    for (int64_t row = Greatest(range.begin, page_begin); row < end; ++row) {
      for (int64_t v = 0; v < kGroup; ++v) {
        Lanes value;
        Load(pages.values[page] + (row - page_begin) * padded_width + channel + v * kLanes, value);
        for (int64_t q = 0; q < kQueries; ++q) sums[q][v] += value * weights[q][row];
      }
    }
  }
  for (int64_t q = 0; q < kQueries; ++q) {
    for (int64_t v = 0; v < kGroup; ++v) {
      __builtin_memcpy(mixed + q * padded_width + channel + v * kLanes, &sums[q][v], sizeof(Lanes));
    }
  }
}

template <typename Element, int64_t kQueries>
LS_INLINE void MixValues(const Tile& tile, int64_t padded_width, const PagesOfBlock<Element>& pages, const Range& range,
                         const float* rescale, const Lanes (&probabilities)[kQueries][kVectors]) {
  float weights[kQueries][kBlock];
  __builtin_memcpy(weights, probabilities, sizeof(weights));
  int64_t channel = 0;
  for (; channel + 4 * kLanes <= padded_width; channel += 4 * kLanes) {
    MixChannels<Element, kQueries, 4>(padded_width, channel, pages, range, rescale, weights, tile.mixed);
  }
  for (; channel + 2 * kLanes <= padded_width; channel += 2 * kLanes) {
    MixChannels<Element, kQueries, 2>(padded_width, channel, pages, range, rescale, weights, tile.mixed);
  }
  for (; channel < padded_width; channel += kLanes) {
    MixChannels<Element, kQueries, 1>(padded_width, channel, pages, range, rescale, weights, tile.mixed);
  }
}

// Folds the blocks that hold the keys seen by any query of the tiles; query q sees ranges[q], and meets key `j` at
// column j + column_shifts[q] of the distance tables. Heads lie side by side in a page, so memory is read in its order.
template <typename Element, int64_t kQueries>
LS_INLINE void FoldKeys(const AttentionRun<Element>& run, const Range& heads, const KeyPages<Element>& pages,
                        const DistanceTable<Element>& distances, const Range* ranges, const int64_t* column_shifts) {
  const int64_t padded_width = PaddedHeadWidth(run.head_width);
  const int64_t stride = distances.stride(), head_distances = run.head_width * stride;
  Range all = ranges[0];
  for (int64_t q = 1; q < kQueries; ++q) {
    all.begin = Least(all.begin, ranges[q].begin);
    all.end = Greatest(all.end, ranges[q].end);
  }
  if (all.begin >= all.end) return;
  for (int64_t block = FloorDivide(all.begin, kBlock); block * kBlock < all.end; ++block) {
    const int64_t block_begin = block * kBlock;
    int64_t columns[kQueries];
    Range lanes[kQueries];
    for (int64_t q = 0; q < kQueries; ++q) {
      // A query that sees nothing of the block may lie outside the table: it reads anywhere in it, and its scores are
      // dropped.
      columns[q] = Least(Greatest(block_begin + column_shifts[q], 0), distances.count + kBlock);
      lanes[q] = {Greatest(ranges[q].begin - block_begin, 0), Least(ranges[q].end - block_begin, kBlock)};
    }
    const Range rows = {Greatest(all.begin - block_begin, 0), Least(all.end - block_begin, kBlock)};
    PagesOfBlock<Element> here = HeadsFurther(FindPages(pages, block), heads.begin * pages.head_elements);
    for (int64_t head = heads.begin; head < heads.end; ++head) {
      const bool last = head + 1 == heads.end;
      const PagesOfBlock<Element> next = last ? FindPages(pages, block + 1) : HeadsFurther(here, pages.head_elements);
      const Element* const table = distances.table + head * head_distances;
      const Element* const next_distances =
          last ? distances.table + columns[0] + kBlock : table + head_distances + columns[0];
      const Tile tile = TileOf(run, head);
      Lanes scores[kQueries][kVectors];
      BlockScores<Element, kQueries>(tile, run.head_width, here, next, table, stride, columns, next_distances, scores);

      float rescale[kQueries];
      for (int64_t q = 0; q < kQueries; ++q) {
        if (lanes[q].begin < lanes[q].end) {
          FoldScores(scores[q], lanes[q], tile.maximum[q], tile.sum[q], rescale[q]);
        } else {
          rescale[q] = 1.0f;
          for (int64_t v = 0; v < kVectors; ++v) scores[q][v] = Lanes{};
        }
      }
      MixValues<Element, kQueries>(tile, padded_width, here, rows, rescale, scores);
      here = next;
    }
  }
}

template <typename Element, int64_t kQueries>
LS_INLINE void AttendTile(const AttentionRun<Element>& run, int64_t first_query, const Range& heads) {
  const int64_t width = run.head_width, padded_width = PaddedHeadWidth(width);
  Range memory[kQueries], segment[kQueries], window[kQueries];
  int64_t chunk_shifts[kQueries], window_shifts[kQueries];
  for (int64_t q = 0; q < kQueries; ++q) {
    const int64_t position = run.position + first_query + q;
    const int64_t own_vector = position / run.chunk_size * run.chunk_rank;  // g*R: where the query's own chunk begins
    memory[q] = {run.first_vector, run.segment_vector};
    segment[q] = {run.segment_vector, own_vector};
    window[q] = {position - run.window_length + 1, position + 1};
    // Column of distance n is kBlock + count-1-n, with n = own_vector-1-j for vectors and n = position-j for rows.
    chunk_shifts[q] = kBlock + run.chunk_distances.count - own_vector;
    window_shifts[q] = kBlock + run.window_distances.count - 1 - position;
  }
  for (int64_t head = heads.begin; head < heads.end; ++head) {
    const Tile tile = TileOf(run, head);
    for (int64_t q = 0; q < kQueries; ++q) {
      const float* const query = run.queries + (first_query + q) * run.stride + head * width;
      for (int64_t c = 0; c < width; ++c) {
        tile.content_queries[q * width + c] = tile.distance_queries[q * width + c] = query[c];
      }
      for (int64_t c = 0; c < padded_width; ++c) tile.mixed[q * padded_width + c] = 0.0f;
      tile.maximum[q] = kMinusInfinity;
      tile.sum[q] = 0.0f;
    }
  }
  FoldKeys<Element, kQueries>(run, heads, run.memory, run.chunk_distances, memory, chunk_shifts);
  FoldKeys<Element, kQueries>(run, heads, run.segment, run.chunk_distances, segment, chunk_shifts);

  for (int64_t head = heads.begin; head < heads.end; ++head) {
    const Tile tile = TileOf(run, head);
    for (int64_t q = 0; q < kQueries; ++q) {
      for (int64_t c = 0; c < width; ++c) {
        tile.content_queries[q * width + c] += run.window_bias[head * width + c];
        tile.distance_queries[q * width + c] += run.relative_bias[head * width + c];
      }
    }
  }
  FoldKeys<Element, kQueries>(run, heads, run.window, run.window_distances, window, window_shifts);

  for (int64_t head = heads.begin; head < heads.end; ++head) {
    const Tile tile = TileOf(run, head);
    for (int64_t q = 0; q < kQueries; ++q) {
      float* const output = run.output + (first_query + q) * run.stride + head * width;
      const float scale = 1.0f / tile.sum[q];
      for (int64_t c = 0; c < width; ++c) output[c] = tile.mixed[q * padded_width + c] * scale;
    }
  }
}

}  // namespace

template <typename Element>
void Attend(const AttentionRun<Element>& run) {
  const int64_t tiled = run.count / kQueriesPerTile * kQueriesPerTile;
  // Tiles compute longer than their memory takes to come: better that a head's distances stay near.
  for (int64_t head = 0; head < run.heads; ++head) {
    for (int64_t query = 0; query < tiled; query += kQueriesPerTile) {
      AttendTile<Element, kQueriesPerTile>(run, query, {head, head + 1});
    }
  }
  for (int64_t query = tiled; query < run.count; ++query) AttendTile<Element, 1>(run, query, {0, run.heads});
}

template void Attend(const AttentionRun<float>& run);
template void Attend(const AttentionRun<BFloat16>& run);

}  // namespace longshort::cpu::LONGSHORT_INSTRUCTION_SET

#undef LS_INLINE
