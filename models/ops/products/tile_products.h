// Tiles of attention: element layout, tensor core products, and the merging of blocks of keys. For kernels only.
//
// A row of `width` elements is read in pieces of 16 bytes. Four lanes q = Lane() % 4 share a row; lane q has pieces q,
// 4 + q, 8 + q, ... Tensor cores accept any order of the summed index, as long as both operands use the same one. So
// vector loads, from global or shared memory, give fragments directly.
#pragma once

#include <cstdint>

#include "models/device/device.h"
#include "models/device/pages.h"

namespace longshort::models::cuda {

template <typename Element, int width>
struct Tile {
  static constexpr int kElementsOfPiece = 16 / sizeof(Element);
  static constexpr int kPiecesOfRow = width / kElementsOfPiece;
  static constexpr int kPiecesOfLane = kPiecesOfRow / 4;
  static constexpr int kRowBytes = width * sizeof(Element);
  static constexpr int kBlockBytes = kPageRows * kRowBytes;
  // Keys whose values one instruction mixes.
  static constexpr int kKeysOfProduct = sizeof(Element) == 2 ? 16 : 8;
};

// The byte offset of a piece of a row in shared memory. Rows of 128 bytes and more would all begin at the same bank, so
// their pieces are permuted (swizzled) row by row. Eight lanes that read one piece of two rows (fragments), or one
// piece of eight rows (LoadMatricesTransposed), then have no bank conflict.
template <int pieces_of_row>
LS_DEVICE int PieceOffset(int row, int piece) {
  const int turn = pieces_of_row >= 8 ? (row & 1) << 2 | (row >> 1 & 3) : row >> 1 & 3;
  return (row * pieces_of_row + (piece ^ turn)) * 16;
}

// --- products ---

// A float32 as the sum of two TF32 numbers, which tensor cores can multiply: exact except for the last 2 bits.
struct SplitFloat {
  uint32_t large, small;
};
LS_DEVICE SplitFloat Split(uint32_t bits) {
  SplitFloat split;
  split.large = ToTf32(FloatOf(bits));
  split.small = ToTf32(Add(FloatOf(bits), -FloatOf(split.large)));
  return split;
}

// A word of an operand, as products take it: two elements of two bytes, or a float32.
template <typename Element>
LS_DEVICE auto FactorOf(uint32_t bits) {
  if constexpr (sizeof(Element) == 2) {
    return bits;
  } else {
    return Split(bits);
  }
}
template <typename Element>
using Factor = decltype(FactorOf<Element>(0));

// d += a b, one step of the summed index: 16 elements of two bytes, 8 of float32.
LS_DEVICE void MultiplyFactors(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  MultiplyMatrices(d, a, b0, b1);
}
LS_DEVICE void MultiplyFactors(float (&d)[4], const SplitFloat (&a)[4], const SplitFloat& b0, const SplitFloat& b1) {
  const uint32_t large[4] = {a[0].large, a[1].large, a[2].large, a[3].large};
  const uint32_t small[4] = {a[0].small, a[1].small, a[2].small, a[3].small};
  MultiplyTf32Matrices(d, small, b0.large, b1.large);
  MultiplyTf32Matrices(d, large, b0.small, b1.small);
  MultiplyTf32Matrices(d, large, b0.large, b1.large);
}
template <typename Element>
LS_DEVICE void MultiplyStep(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const Factor<Element> factors[4] = {FactorOf<Element>(a[0]), FactorOf<Element>(a[1]), FactorOf<Element>(a[2]),
                                      FactorOf<Element>(a[3])};
  MultiplyFactors(d, factors, FactorOf<Element>(b0), FactorOf<Element>(b1));
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

// scores[16 rows][64 keys] += queries . keys, both in shared memory: lane (g, q) has rows `row` and `row` + 8.
template <typename Element, int width>
LS_DEVICE void AddProducts(float (&scores)[kPageRows / 8][4], const unsigned char* queries, int row,
                           const unsigned char* keys) {
  using Shape = Tile<Element, width>;
  LS_UNROLL
  for (int c = 0; c < Shape::kPiecesOfLane; ++c) {
    const int piece = 4 * c + Lane() % 4;
    const Words<4> of_row = Load<4>(queries + PieceOffset<Shape::kPiecesOfRow>(row, piece));
    const Words<4> row_8 = Load<4>(queries + PieceOffset<Shape::kPiecesOfRow>(row + 8, piece));
    LS_UNROLL
    for (int n = 0; n < kPageRows / 8; ++n) {
      const Words<4> key = Load<4>(keys + PieceOffset<Shape::kPiecesOfRow>(8 * n + Lane() / 4, piece));
      MultiplyPiece<Element>(scores[n], of_row, row_8, key);
    }
  }
}

// Converts the probabilities of rows g (p0, p1) and g+8 (p2, p3) at two adjacent keys to an operand. For two-byte
// elements, `next` has the probabilities eight keys further.
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

// l += sums of probabilities: a product with ones, so that the sum uses the same rounded probabilities as the values
// do.
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

// The factors that scale the running result and a block when they are merged.
struct MergeFactors {
  float before, block;
};
// Updates `largest` to the larger of both. A block that a row does not see has no effect.
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
// Merges `parts` results, left to right. `outputs` points to this thread's channels of the first part, [parts, width];
// `sums` has each part's largest score and sum, [parts, 2].
template <int width, int channels>
LS_DEVICE void MergeParts(float (&merged)[channels], float& largest, float& sum, int parts, const float* outputs,
                          const float* sums) {
  for (int part = 0; part < parts; ++part) {
    const Words<2> part_sums = Load<2>(sums + 2 * part);
    const Words<channels> mixed = Load<channels>(outputs + int64_t{part} * width);
    const MergeFactors factors = Merge(largest, FloatOf(part_sums.word[0]));
    sum = Merged(sum, FloatOf(part_sums.word[1]), factors);
    LS_UNROLL
    for (int c = 0; c < channels; ++c) merged[c] = Merged(merged[c], FloatOf(mixed.word[c]), factors);
  }
}

}  // namespace longshort::models::cuda
