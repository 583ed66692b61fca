// Shared by the two kernels of causal_attention.h, so that their results are bit-identical: visible keys, addresses of
// keys, and queries. For kernels only.
#pragma once

#include <cstdint>

#include "models/device/device.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/products/tile_products.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {

// --- visible keys; numbered from the start of the first visible key's block of the grid, so that 32 bits suffice ---

LS_DEVICE int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

enum class Part { kMemory, kSegment, kWindow };

// The union of the keys that rows of consecutive positions in one segment see.
struct SeenKeys {
  int64_t vectors_block, window_block;  // block 0 of the numbering: on the vectors' grid, and on the window's
  // Vectors memory_begin .. segment_begin-1 are the memory's; segment_begin .. segment_end-1 are the segment's.
  int memory_begin, segment_begin, segment_end;
  int window_begin, window_end;
};
// The first vector of a position's own chunk. A row sees only vectors before it.
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

// The newest vector and the newest window key that a row sees. Their distance is 0.
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

// The blocks of a part, from block `first` on.
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

// 64 keys from key `first` on; some row sees keys begin .. end-1 of them.
struct KeyBlock {
  Part part;
  int first;
  int begin, end;

  LS_DEVICE bool IsSeen(int key) const { return key >= begin && key < end; }
};
LS_DEVICE int InBlock(int key) { return key < 0 ? 0 : key > kPageRows ? kPageRows : key; }
// Visible block number `index`; undefined after the last one.
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
// The keys of a block that one row sees.
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

// Indices of a slice's page ids, from block 0 of the numbering on.
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

// A head's keys in this block, [kPageRows, width]; its values follow.
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
// The table's row of a distance. A distance outside the table is clamped: no row sees such a key.
template <typename Element, int width>
LS_DEVICE const unsigned char* DistanceRow(const Distances& distances, int distance) {
  const int last = distances.count - 1;
  const int row = distance < 0 ? 0 : distance > last ? last : distance;
  return distances.table + int64_t{row} * Tile<Element, width>::kRowBytes;
}

// --- queries ---

// A channel of a scaled query, plus its bias unless that is null; 0 in the padding.
LS_DEVICE float QueryElement(const CausalAttention& attention, int64_t row, int head, int channel, const float* bias) {
  if (channel >= attention.head_width) return 0.0f;
  const int column = head * attention.head_width + channel;
  const float query = RowElement(attention.row, attention.queries, row * attention.query_stride + column);
  return bias == nullptr ? Multiply(query, attention.query_scale)
                         : MultiplyAdd(query, attention.query_scale, bias[column]);
}
// The biases that are added to queries for keys, and for position terms.
LS_DEVICE const float* ContentBias(const CausalAttention& attention, Part part) {
  return part == Part::kWindow ? attention.window_bias : attention.query_bias;
}
LS_DEVICE const float* DistanceBias(const CausalAttention& attention, Part part) {
  return part == Part::kWindow ? attention.relative_bias : attention.query_bias;
}

}  // namespace longshort::models::cuda
