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

// --- which keys ---

LS_DEVICE int64_t FloorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

enum class Part { kMemory, kSegment, kWindow };

struct KeyRange {
  int64_t begin, end;
};
LS_DEVICE int64_t FirstBlock(const KeyRange& range) { return FloorDivide(range.begin, kPageRows); }
LS_DEVICE int BlockCount(const KeyRange& range) {
  return range.begin >= range.end
             ? 0
             : static_cast<int>(FloorDivide(range.end - 1, kPageRows) - FloorDivide(range.begin, kPageRows) + 1);
}

// What rows of consecutive positions in one segment see, together: vectors on their grid, the window's rows on theirs.
struct SeenKeys {
  KeyRange memory, segment, window;

  LS_DEVICE KeyRange Of(Part part) const {
    return part == Part::kMemory ? memory : part == Part::kSegment ? segment : window;
  }
};
// Where the chunk of a position begins, in vectors: what a row of it sees ends there.
LS_DEVICE int64_t OwnVector(const CausalAttention& attention, int64_t position) {
  return position / attention.chunk_size * attention.chunk_rank;
}
LS_DEVICE SeenKeys KeysSeenFrom(const CausalAttention& attention, int64_t segment_start, int64_t first_position,
                                int64_t last_position) {
  const int64_t segment_vector = OwnVector(attention, segment_start);
  SeenKeys seen;
  seen.memory = {segment_vector - attention.memory_vectors, segment_vector};
  seen.segment = {segment_vector, OwnVector(attention, last_position)};
  seen.window = {first_position - attention.window_length + 1, last_position + 1};
  return seen;
}

// A block of keys: rows 64 * grid_block on, of which those of `seen` count.
struct KeyBlock {
  Part part;
  int64_t first;   // key on the grid
  int begin, end;  // which of the 64 somebody sees
};
// Block number `index` of what is seen; past the last one the result is of no use.
LS_DEVICE KeyBlock BlockNumber(const SeenKeys& seen, int index) {
  const int memory = BlockCount(seen.memory), segment = BlockCount(seen.segment);
  KeyBlock block;
  block.part = index < memory ? Part::kMemory : index < memory + segment ? Part::kSegment : Part::kWindow;
  const KeyRange range = seen.Of(block.part);
  index -= block.part == Part::kMemory ? 0 : block.part == Part::kSegment ? memory : memory + segment;
  block.first = (FirstBlock(range) + index) * kPageRows;
  block.begin = range.begin > block.first ? static_cast<int>(range.begin - block.first) : 0;
  block.end = range.end < block.first + kPageRows ? static_cast<int>(range.end - block.first) : kPageRows;
  return block;
}
LS_DEVICE int BlockCount(const SeenKeys& seen) {
  return BlockCount(seen.memory) + BlockCount(seen.segment) + BlockCount(seen.window);
}

// The keys of a head in this block, [kPageRows, width]; its values follow.
template <typename Element, int width>
LS_DEVICE const unsigned char* KeysOfBlock(const CausalAttention& attention, int64_t slice, const KeyBlock& block,
                                           int head) {
  const KeyPages& pages = block.part == Part::kMemory    ? attention.memory
                          : block.part == Part::kSegment ? attention.segment
                                                         : attention.window;
  const int64_t index = FloorDivide(block.first, kPageRows) - pages.table.first_pages[slice];
  const int64_t id = pages.table.ids[pages.table.first_ids[slice] + index];
  const auto* const page =
      static_cast<const Element*>(id < 0 ? pages.zero_page : pages.pages) + (id < 0 ? 0 : id * attention.page_elements);
  return reinterpret_cast<const unsigned char*>(page + int64_t{head} * 2 * kPageRows * width);
}

// Position terms of a part: distance 0 is the newest key that a row sees.
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
LS_DEVICE const unsigned char* DistanceRow(const Distances& distances, int64_t distance) {
  const int64_t last = distances.count - 1;
  const int64_t row = distance < 0 ? 0 : distance > last ? last : distance;
  return distances.table + row * Tile<Element, width>::kRowBytes;
}

// The key at distance 0 of a row.
LS_DEVICE int64_t NewestKey(const CausalAttention& attention, Part part, int64_t position) {
  return part == Part::kWindow ? position : OwnVector(attention, position) - 1;
}
// Which of a block's keys a row sees.
struct SeenInBlock {
  int begin, end;

  LS_DEVICE bool Has(int key) const { return key >= begin && key < end; }
};
LS_DEVICE SeenInBlock RowSees(const CausalAttention& attention, const SeenKeys& seen, const KeyBlock& block,
                              int64_t position) {
  const KeyRange all = seen.Of(block.part);
  int64_t begin = all.begin, end = all.end;
  if (block.part == Part::kSegment) end = OwnVector(attention, position);
  if (block.part == Part::kWindow) {
    begin = position - attention.window_length + 1;
    end = position + 1;
  }
  begin -= block.first;
  end -= block.first;
  SeenInBlock in_block;
  in_block.begin = static_cast<int>(begin < 0 ? 0 : begin > kPageRows ? kPageRows : begin);
  in_block.end = static_cast<int>(end < 0 ? 0 : end > kPageRows ? kPageRows : end);
  return in_block;
}

// --- rows ---

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
