// What the two kernels of causal_attention.h share, so that their bits are equal: where elements lie, products, masks
// and the merging of blocks. For kernels only.
//
// A row of `width` elements is read in pieces of 16 bytes. Of the four lanes q = Lane() % 4 that share a row, lane q
// has pieces q, 4 + q, 8 + q, ... : for the tensor cores the order of the summed index does not matter, as long as both
// operands have the same. So fragments come from vector loads, from global and from shared memory.
#pragma once

#include <cstdint>

#include "models/kernels/cuda/causal_attention.h"
#include "models/kernels/cuda/device.h"
#include "models/kernels/cuda/row_access.h"

namespace longshort::cuda {

template <typename Element, int width>
struct Tile {
  static constexpr int kElementsOfPiece = 16 / sizeof(Element);
  static constexpr int kPiecesOfRow = width / kElementsOfPiece;
  static constexpr int kPiecesOfLane = kPiecesOfRow / 4;
  static constexpr int kRowBytes = width * sizeof(Element);
  static constexpr int kBlockBytes = kPageRows * kRowBytes;
  // Keys that one instruction mixes values of.
  static constexpr int kKeysOfProduct = sizeof(Element) == 2 ? 16 : 8;
};

// Where a piece of a row lies in shared memory, in bytes. Rows of 128 bytes and more would all begin at the same bank:
// the order of their pieces is changed row by row, so that eight lanes that read one piece of two rows (fragments) or
// one piece of eight rows (LoadMatrices) meet no bank twice.
template <int pieces_of_row>
LS_DEVICE int PieceOffset(int row, int piece) {
  const int turn = pieces_of_row >= 8 ? (row & 1) << 2 | (row >> 1 & 3) : row >> 1 & 3;
  return (row * pieces_of_row + (piece ^ turn)) * 16;
}

// --- products ---

// A number as the sum of two of TF32, whose products the tensor cores make: all but the last 2 bits of float32.
struct SplitFloat {
  uint32_t large, small;
};
LS_DEVICE SplitFloat Split(uint32_t bits) {
  SplitFloat split;
  split.large = ToTf32(FloatOf(bits));
  split.small = ToTf32(Add(FloatOf(bits), -FloatOf(split.large)));
  return split;
}

// d += a b, one step of the summed index: 16 elements of two bytes, 8 of float32.
template <typename Element>
LS_DEVICE void MultiplyStep(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (sizeof(Element) == 2) {
    MultiplyMatrices<Element>(d, a, b0, b1);
  } else {
    uint32_t large[4], small[4];
    LS_UNROLL
    for (int i = 0; i < 4; ++i) {
      const SplitFloat split = Split(a[i]);
      large[i] = split.large;
      small[i] = split.small;
    }
    const SplitFloat first = Split(b0), second = Split(b1);
    MultiplyTf32Matrices(d, small, first.large, second.large);
    MultiplyTf32Matrices(d, large, first.small, second.small);
    MultiplyTf32Matrices(d, large, first.large, second.large);
  }
}

// d[16 rows][8 columns] += rows . columns over one piece: lane (g, q) has piece q of rows g and g+8, and of column g.
template <typename Element>
LS_DEVICE void MultiplyPiece(float (&d)[4], const Words<4>& row, const Words<4>& row_8, const Words<4>& column) {
  LS_UNROLL
  for (int step = 0; step < 2; ++step) {
    const uint32_t a[4] = {row.word[2 * step], row_8.word[2 * step], row.word[2 * step + 1], row_8.word[2 * step + 1]};
    MultiplyStep<Element>(d, a, column.word[2 * step], column.word[2 * step + 1]);
  }
}

// Probabilities of rows g (p0, p1) and g+8 (p2, p3) at two keys beside each other, as an operand. Two-byte elements:
// `next` are those eight keys further.
template <typename Element>
LS_DEVICE void ProbabilityOperand(uint32_t (&a)[4], const float (&p)[4], const float (&next)[4]) {
  if constexpr (sizeof(Element) == 2) {
    a[0] = PackBFloat16(p[0], p[1]);
    a[1] = PackBFloat16(p[2], p[3]);
    a[2] = PackBFloat16(next[0], next[1]);
    a[3] = PackBFloat16(next[2], next[3]);
  } else {
    // Slot q of the summed index is key 2q, slot q + 4 is key 2q + 1.
    a[0] = BitsOf(p[0]);
    a[1] = BitsOf(p[2]);
    a[2] = BitsOf(p[1]);
    a[3] = BitsOf(p[3]);
  }
}

// l += sums of probabilities: a product with ones, so that what is summed is what values are multiplied with.
template <typename Element>
LS_DEVICE void AddSums(float (&sums)[4], const uint32_t (&a)[4]) {
  const uint32_t one = sizeof(Element) == 2 ? 0x3f803f80u : 0x3f800000u;
  MultiplyStep<Element>(sums, a, one, one);
}

// mixed[2][4] += probabilities times values: keys kKeysOfProduct * step on, channels 16 * pair on, of a block of values
// in shared memory.
template <typename Element, int width>
LS_DEVICE void MixValues(float (&mixed)[2][4], const uint32_t (&a)[4], const unsigned char* values, int step,
                         int pair) {
  using Shape = Tile<Element, width>;
  const int lane = Lane();
  if constexpr (sizeof(Element) == 2) {
    uint32_t b[4];
    LoadMatricesTransposed(b, values + PieceOffset<Shape::kPiecesOfRow>(16 * step + lane % 16, 2 * pair + lane / 16));
    MultiplyStep<Element>(mixed[0], a, b[0], b[1]);
    MultiplyStep<Element>(mixed[1], a, b[2], b[3]);
  } else {
    const int group = lane / 4, row = 8 * step + lane % 4 * 2;
    LS_UNROLL
    for (int n = 0; n < 2; ++n) {
      const int channel = 16 * pair + 8 * n + group, piece = channel / 4, word = channel % 4 * 4;
      const uint32_t b0 = Load<1>(values + PieceOffset<Shape::kPiecesOfRow>(row, piece) + word).word[0];
      const uint32_t b1 = Load<1>(values + PieceOffset<Shape::kPiecesOfRow>(row + 1, piece) + word).word[0];
      MultiplyStep<Element>(mixed[n], a, b0, b1);
    }
  }
}

// --- softmax; scores are in units of log2, so that e^x is 2^score ---

// 2^(score - largest), 0 where nothing is seen.
LS_DEVICE float Probability(float score, float largest) {
  return largest == kMinusInfinity ? 0.0f : Exp2(Add(score, -largest));
}

// How what was folded before, and a block, are scaled when they are merged.
struct MergeFactors {
  float before, block;
};
// Makes `largest` that of both. A block that a row does not see changes nothing.
LS_DEVICE MergeFactors Merge(float& largest, float block_largest) {
  const float merged = Larger(largest, block_largest);
  MergeFactors factors = {1.0f, 0.0f};
  if (merged != kMinusInfinity) factors = {Exp2(Add(largest, -merged)), Exp2(Add(block_largest, -merged))};
  largest = merged;
  return factors;
}
LS_DEVICE float Merged(float before, float block, const MergeFactors& factors) {
  return MultiplyAdd(before, factors.before, Multiply(block, factors.block));
}

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

}  // namespace longshort::cuda
