// What the two kernels of causal_attention.h share, so that their bits are equal: which keys, where they lie, and
// queries. For kernels only.
#pragma once

#include <cstdint>

#include "models/gpu/causal_attention.h"
#include "models/gpu/device.h"
#include "models/gpu/row_access.h"
#include "models/gpu/tile_products.h"

namespace longshort::models::cuda {

// --- which keys; counted from the grid's block of the first one that is seen, so that 32 bits are enough ---

LS_DEVICE int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

enum class Part { kMemory, kSegment, kWindow };

// What rows of consecutive positions in one segment see, together.
struct SeenKeys {
  int64_t vectors_block, window_block;  // where counting begins: a block of the vectors' grid, and of the window's
  // Vectors memory_begin .. segment_begin-1 are memory's, from there to segment_end-1 the segment's; ends are
  // exclusive.
  int memory_begin, segment_begin, segment_end;
  int window_begin, window_end;
};
// Where the chunk of a position begins, in vectors: what a row of it sees ends there.
LS_DEVICE int64_t OwnVector(const CausalAttention& attention, int64_t position) {
  return position / attention.chunk_size * attention.chunk_rank;
}
LS_DEVICE SeenKeys KeysSeenFrom(const CausalAttention& attention, int64_t segment_start, int64_t first_position,
                                int64_t last_position) {
  const int64_t segment_vector = OwnVector(attention, segment_start);
  const int64_t first_vector = segment_vector - attention.memory_vectors;
  const int64_t first_row = first_position - attention.window_length + 1;
  SeenKeys seen;
  seen.vectors_block = FloorDivide(first_vector, kPageRows);
  seen.window_block = FloorDivide(first_row, kPageRows);
  const int64_t vectors_from = seen.vectors_block * kPageRows;
  seen.memory_begin = static_cast<int>(first_vector - vectors_from);
  seen.segment_begin = static_cast<int>(segment_vector - vectors_from);
  seen.segment_end = static_cast<int>(OwnVector(attention, last_position) - vectors_from);
  seen.window_begin = static_cast<int>(first_row - seen.window_block * kPageRows);
  seen.window_end = static_cast<int>(last_position + 1 - seen.window_block * kPageRows);
  return seen;
}

// The newest key that a row sees, which is at distance 0 of it: of vectors, and of the window.
struct NewestKeys {
  int vector, row;

  LS_DEVICE int Of(Part part) const { return part == Part::kWindow ? row : vector; }
};
LS_DEVICE NewestKeys NewestKeysOf(const CausalAttention& attention, const SeenKeys& seen, int64_t position) {
  NewestKeys newest;
  newest.vector = static_cast<int>(OwnVector(attention, position) - 1 - seen.vectors_block * kPageRows);
  newest.row = static_cast<int>(position - seen.window_block * kPageRows);
  return newest;
}

// Blocks of a part: from block `first` on.
struct Blocks {
  int first, count;
};
LS_DEVICE Blocks BlocksOf(int begin, int end) {
  Blocks blocks;
  blocks.first = begin / kPageRows;
  blocks.count = begin < end ? (end - 1) / kPageRows + 1 - blocks.first : 0;
  return blocks;
}
LS_DEVICE int BlockCount(const SeenKeys& seen) {
  return BlocksOf(seen.memory_begin, seen.segment_begin).count + BlocksOf(seen.segment_begin, seen.segment_end).count +
         BlocksOf(seen.window_begin, seen.window_end).count;
}

// 64 keys, from key `first` on, of which somebody sees begin .. end-1.
struct KeyBlock {
  Part part;
  int first;
  int begin, end;

  LS_DEVICE bool IsSeen(int key) const { return key >= begin && key < end; }
};
LS_DEVICE int InBlock(int key) { return key < 0 ? 0 : key > kPageRows ? kPageRows : key; }
// Block number `index` of what is seen; past the last one the result is of no use.
LS_DEVICE KeyBlock BlockNumber(const SeenKeys& seen, int index) {
  const int memory = BlocksOf(seen.memory_begin, seen.segment_begin).count;
  const Blocks segment = BlocksOf(seen.segment_begin, seen.segment_end);
  KeyBlock block;
  if (index < memory) {
    block.part = Part::kMemory;
    block.first = index * kPageRows;
    block.begin = InBlock(seen.memory_begin - block.first);
    block.end = InBlock(seen.segment_begin - block.first);
  } else if (index < memory + segment.count) {
    block.part = Part::kSegment;
    block.first = (segment.first + index - memory) * kPageRows;
    block.begin = InBlock(seen.segment_begin - block.first);
    block.end = InBlock(seen.segment_end - block.first);
  } else {
    block.part = Part::kWindow;
    block.first = (index - memory - segment.count) * kPageRows;
    block.begin = InBlock(seen.window_begin - block.first);
    block.end = InBlock(seen.window_end - block.first);
  }
  return block;
}
// Which of the block's keys one row sees.
struct RowKeys {
  int begin, end;

  LS_DEVICE bool Has(int key) const { return key >= begin && key < end; }
};
LS_DEVICE RowKeys KeysOfRow(const KeyBlock& block, const NewestKeys& newest, int window_length) {
  RowKeys keys = {block.begin, block.end};
  if (block.part == Part::kMemory) return keys;
  keys.end = InBlock(newest.Of(block.part) + 1 - block.first);
  if (block.part == Part::kWindow) keys.begin = InBlock(newest.row - window_length + 1 - block.first);
  return keys;
}

// Where the ids of a slice's pages are, from the block on where counting begins.
struct PageIds {
  int memory, segment, window;
};
LS_DEVICE int FirstPageId(const PageTable& table, int64_t slice, int64_t block) {
  return static_cast<int>(table.first_ids[slice] + block - table.first_pages[slice]);
}
LS_DEVICE PageIds PageIdsOf(const CausalAttention& attention, const SeenKeys& seen, int64_t slice) {
  PageIds ids;
  ids.memory = FirstPageId(attention.memory.table, slice, seen.vectors_block);
  ids.segment = FirstPageId(attention.segment.table, slice, seen.vectors_block);
  ids.window = FirstPageId(attention.window.table, slice, seen.window_block);
  return ids;
}

// The keys of a head in this block, [kPageRows, width]; its values follow.
template <typename Element, int width>
LS_DEVICE const unsigned char* KeysOfBlock(const CausalAttention& attention, const PageIds& ids, const KeyBlock& block,
                                           int head) {
  const KeyPages& pages = block.part == Part::kMemory    ? attention.memory
                          : block.part == Part::kSegment ? attention.segment
                                                         : attention.window;
  const int first_id = block.part == Part::kMemory    ? ids.memory
                       : block.part == Part::kSegment ? ids.segment
                                                      : ids.window;
  const int64_t id = pages.table.ids[first_id + block.first / kPageRows];
  const auto* const page =
      static_cast<const Element*>(id < 0 ? pages.zero_page : pages.pages) + (id < 0 ? 0 : id * attention.page_elements);
  return reinterpret_cast<const unsigned char*>(page + int64_t{head} * 2 * kPageRows * width);
}

// Position terms of a part, by distance.
struct Distances {
  const unsigned char* table;  // the head's, [count, width]
  int count;
};
template <typename Element, int width>
LS_DEVICE Distances DistancesOf(const CausalAttention& attention, Part part, int head) {
  Distances distances;
  const bool window = part == Part::kWindow;
  distances.count = window ? attention.window_length : attention.chunk_distance_count;
  distances.table = static_cast<const unsigned char*>(window ? attention.window_distances : attention.chunk_distances) +
                    int64_t{head} * distances.count * Tile<Element, width>::kRowBytes;
  return distances;
}
// The row of a distance; of one that the table does not have, which no row sees: any.
template <typename Element, int width>
LS_DEVICE const unsigned char* DistanceRow(const Distances& distances, int distance) {
  const int last = distances.count - 1;
  const int row = distance < 0 ? 0 : distance > last ? last : distance;
  return distances.table + int64_t{row} * Tile<Element, width>::kRowBytes;
}

// --- queries ---

// A channel of a query, 0 where it is padded; with a bias, or none.
LS_DEVICE float QueryElement(const CausalAttention& attention, int64_t row, int head, int channel, const float* bias) {
  if (channel >= attention.head_width) return 0.0f;
  const int column = head * attention.head_width + channel;
  const float query = RowElement(attention.row, attention.queries, row * attention.query_stride + column);
  return bias == nullptr ? query : Add(query, bias[column]);
}
// What queries get where they meet keys, and position terms.
LS_DEVICE const float* ContentBias(const CausalAttention& attention, Part part) {
  return part == Part::kWindow ? attention.window_bias : nullptr;
}
LS_DEVICE const float* DistanceBias(const CausalAttention& attention, Part part) {
  return part == Part::kWindow ? attention.relative_bias : nullptr;
}

}  // namespace longshort::models::cuda
