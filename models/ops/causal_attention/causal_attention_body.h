// The body of causal_attention.h (row_products_body.h says how bodies are compiled).
#pragma once

#include <cstdint>

#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/causal_attention/causal_attention_pages_body.h"
#include "models/ops/rows/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// The keys that the queries of a tile see: query q sees ranges[q] of the grid, and its distance to key `j` is column j
// + column_shifts[q] of the distance tables.
template <typename Element>
struct SeenKeys {
  const KeyPages<Element>& pages;
  const DistanceTable<Element>& distances;
  const Range* ranges;
  const int64_t* column_shifts;
  bool are_vectors;  // compressed vectors of chunks, else the window's keys
};

// Folds the keys of kPages pages, beginning with page `first` of the grid.
template <typename Element, int64_t kQueries, int64_t kPages>
LS_INLINE void FoldPages(const AttentionRun<Element>& run, const Range& heads, const SeenKeys<Element>& seen,
                         const Range& all, int64_t first) {
  const int64_t padded_width = PaddedHeadWidth(run.head_width), begin = first * kPageRows;
  const int64_t stride = seen.distances.stride(), head_distances = EvenHeadWidth(run.head_width) * stride;
  int64_t columns[kQueries];
  Range lanes[kQueries];
  for (int64_t q = 0; q < kQueries; ++q) {
    // A query that sees no key here may be outside the table. Its column is clamped, and its scores are dropped.
    columns[q] = Min(Max(begin + seen.column_shifts[q], 0), seen.distances.count + kBlock);
    lanes[q] = {Max(seen.ranges[q].begin - begin, 0), Min(seen.ranges[q].end - begin, kPages * kPageRows)};
  }
  const Range rows = {Max(all.begin - begin, 0), Min(all.end - begin, kPages * kPageRows)};
  SomePages<Element> here = HeadsFurther(FindPages(seen.pages, first), heads.begin * seen.pages.head_elements);
  for (int64_t head = heads.begin; head < heads.end; ++head) {
    const bool last = head + 1 == heads.end;
    const Element* const table = seen.distances.table + head * head_distances;
    NextKeys<Element> next;
    if constexpr (kQueries == 1) {
      next.pages = last ? FindPages(seen.pages, first + kPages) : HeadsFurther(here, seen.pages.head_elements);
      next.count = last ? kPagesPerBlock : kPages;
      next.distances = last ? seen.distances.table + (columns[0] + kPages * kPageRows) * kColumnElements<Element>
                            : table + head_distances + columns[0] * kColumnElements<Element>;
    }
    const Tile tile = TileOf(run, head);
    Lanes scores[kQueries][kPages];
    if (seen.are_vectors) {
      VectorScores<Element, kQueries, kPages>(tile, run.head_width, here, next, table, stride, columns, scores);
    } else {
      WindowScores<Element, kQueries, kPages>(tile, run.head_width, here, next, table, stride, columns, scores);
    }

    float rescale[kQueries];
    for (int64_t q = 0; q < kQueries; ++q) {
      if (lanes[q].begin < lanes[q].end) {
        FoldScores(scores[q], lanes[q], tile.maximum[q], tile.sum[q], rescale[q]);
      } else {
        rescale[q] = 1.0f;
        for (int64_t v = 0; v < kPages; ++v) scores[q][v] = Lanes{};
      }
    }
    MixValues<Element, kQueries, kPages>(tile, padded_width, here, next, rows, rescale, scores);
    here = HeadsFurther(here, seen.pages.head_elements);
  }
}

// Folds the keys that the tiles see, block by block. Pages without keys that some query sees are skipped. The heads of
// a page are adjacent, so memory is read in order.
template <typename Element, int64_t kQueries>
LS_INLINE void FoldKeys(const AttentionRun<Element>& run, const Range& heads, const SeenKeys<Element>& seen) {
  Range all = seen.ranges[0];
  for (int64_t q = 1; q < kQueries; ++q) {
    all.begin = Min(all.begin, seen.ranges[q].begin);
    all.end = Max(all.end, seen.ranges[q].end);
  }
  if (all.begin >= all.end) return;
  const Range pages = {FloorDivide(all.begin, kPageRows), FloorDivide(all.end - 1, kPageRows) + 1};
  for (int64_t first = pages.begin; first < pages.end;) {
    const int64_t end = Min((FloorDivide(first, kPagesPerBlock) + 1) * kPagesPerBlock, pages.end);
    switch (end - first) {
      case 1:
        FoldPages<Element, kQueries, 1>(run, heads, seen, all, first);
        break;
      case 2:
        FoldPages<Element, kQueries, 2>(run, heads, seen, all, first);
        break;
      case 3:
        FoldPages<Element, kQueries, 3>(run, heads, seen, all, first);
        break;
      default:
        FoldPages<Element, kQueries, kPagesPerBlock>(run, heads, seen, all, first);
    }
    first = end;
  }
}

template <typename Element, int64_t kQueries>
LS_INLINE void AttendTile(const AttentionRun<Element>& run, int64_t first_query, const Range& heads) {
  const int64_t width = run.head_width, even_width = EvenHeadWidth(width), padded_width = PaddedHeadWidth(width);
  Range memory[kQueries], segment[kQueries], window[kQueries];
  int64_t chunk_shifts[kQueries], window_shifts[kQueries];
  for (int64_t q = 0; q < kQueries; ++q) {
    const int64_t position = run.position + first_query + q;
    const int64_t own_vector = position / run.chunk_size * run.chunk_rank;  // g*R: begin of the query's own chunk
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
      for (int64_t c = 0; c < even_width; ++c) {
        tile.content_queries[q * even_width + c] = c < width ? query[c] : 0.0f;
      }
      for (int64_t c = 0; c < padded_width; ++c) tile.mixed[q * padded_width + c] = 0.0f;
      tile.maximum[q] = kMinusInfinity;
      tile.sum[q] = 0.0f;
    }
  }
  FoldKeys<Element, kQueries>(run, heads, {run.memory, run.chunk_distances, memory, chunk_shifts, true});
  FoldKeys<Element, kQueries>(run, heads, {run.segment, run.chunk_distances, segment, chunk_shifts, true});

  for (int64_t head = heads.begin; head < heads.end; ++head) {
    const Tile tile = TileOf(run, head);
    for (int64_t q = 0; q < kQueries; ++q) {
      for (int64_t c = 0; c < even_width; ++c) {
        const float query = tile.content_queries[q * even_width + c];
        tile.content_queries[q * even_width + c] = query + (c < width ? run.window_bias[head * width + c] : 0.0f);
        tile.distance_queries[q * even_width + c] = query + (c < width ? run.relative_bias[head * width + c] : 0.0f);
      }
    }
  }
  FoldKeys<Element, kQueries>(run, heads, {run.window, run.window_distances, window, window_shifts, false});

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
  // Tiles are compute-bound, so heads are the outer loop: a head's distances stay in the cache.
  for (int64_t head = 0; head < run.heads; ++head) {
    for (int64_t query = 0; query < tiled; query += kQueriesPerTile) {
      AttendTile<Element, kQueriesPerTile>(run, query, {head, head + 1});
    }
  }
  for (int64_t query = tiled; query < run.count; ++query) AttendTile<Element, 1>(run, query, {0, run.heads});
}

template void Attend(const AttentionRun<float>& run);
template void Attend(const AttentionRun<BFloat16>& run);

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
