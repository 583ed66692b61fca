// Online softmax over blocks of 64 keys, for 16 rows of a warp; and copies of rows to shared memory. For kernels only.
//
// Lane (g, q) holds the scores of rows g and g + 8 at keys 8n + 2q and 8n + 2q + 1: scores[n][2 * half + i].
#pragma once

#include <cstdint>

#include "models/device/device.h"
#include "models/device/pages.h"
#include "models/ops/products/tile_products.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

constexpr int kWarpRows = 16;

// A block's probabilities, as operands of products.
template <typename Element>
struct BlockProbabilities {
  static constexpr int kSteps = kPageRows / Tile<Element, 32>::kKeysOfProduct;

  uint32_t operands[kSteps][4];
  MergeFactors factors[2];  // of rows g and g + 8
};

// The running softmax of rows g and g + 8: the largest score, and the sum of probabilities relative to it.
struct FoldedRows {
  float largest[2] = {kMinusInfinity, kMinusInfinity};
  float sums[2] = {};

  // Folds a block of scores, in units of log2. The score of a key that a row does not see is -infinity.
  template <typename Element>
  LS_DEVICE void Fold(float (&scores)[kPageRows / 8][4], BlockProbabilities<Element>& block) {
    float block_largest[2];
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      float max = kMinusInfinity;
      LS_UNROLL
      for (int n = 0; n < kPageRows / 8; ++n) max = Larger(max, Larger(scores[n][2 * half], scores[n][2 * half + 1]));
      max = Larger(max, ShuffleXor(max, 1));
      max = Larger(max, ShuffleXor(max, 2));
      LS_UNROLL
      for (int n = 0; n < kPageRows / 8; ++n) {
        LS_UNROLL
        for (int i = 0; i < 2; ++i) scores[n][2 * half + i] = Probability(scores[n][2 * half + i], max);
      }
      block_largest[half] = max;
    }
    constexpr int kTilesOfStep = Tile<Element, 32>::kKeysOfProduct / 8;
    float block_sums[4] = {};
    LS_UNROLL
    for (int step = 0; step < BlockProbabilities<Element>::kSteps; ++step) {
      ProbabilityOperand<Element>(block.operands[step], scores[step * kTilesOfStep],
                                  scores[step * kTilesOfStep + kTilesOfStep - 1]);
      AddSums<Element>(block_sums, block.operands[step]);
    }
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      block.factors[half] = Merge(largest[half], block_largest[half]);
      sums[half] = Merged(sums[half], block_sums[2 * half], block.factors[half]);
    }
  }
};

// Merges a block's mixed values into channels 16 * pair to 16 * pair + 15. merged[n][i] is channel
// 16 * pair + 8n + 2q + i % 2 of row g or g + 8.
//   values  the block's, in shared memory
template <typename Element, int width>
LS_DEVICE void MixBlock(float (&merged)[2][4], const BlockProbabilities<Element>& block, const unsigned char* values,
                        int pair) {
  float mixed[2][4] = {};
  LS_UNROLL
  for (int step = 0; step < BlockProbabilities<Element>::kSteps; ++step) {
    MixValues<Element, width>(mixed, block.operands[step], values, step, pair);
  }
  LS_UNROLL
  for (int n = 0; n < 2; ++n) {
    LS_UNROLL
    for (int i = 0; i < 4; ++i) merged[n][i] = Merged(merged[n][i], mixed[n][i], block.factors[i / 2]);
  }
}

// Folds a block of scores, and merges its mixed values.
template <typename Element, int width>
LS_DEVICE void FoldBlock(float (&scores)[kPageRows / 8][4], const unsigned char* values, FoldedRows& folded,
                         float (&mixed)[width / 16][2][4]) {
  BlockProbabilities<Element> block;
  folded.Fold(scores, block);
  LS_UNROLL
  for (int pair = 0; pair < width / 16; ++pair) MixBlock<Element, width>(mixed[pair], block, values, pair);
}

// Whether heads of these rows can be read in pieces of 16 bytes.
template <typename Element>
LS_DEVICE bool HasWholePieces(const Rows& rows, int head_width) {
  constexpr int kElements = 16 / sizeof(Element);
  return head_width % kElements == 0 && rows.stride % kElements == 0 &&
         reinterpret_cast<uintptr_t>(rows.data) % 16 == 0;
}

// Begins to copy a piece of a head's row to shared memory, with one instruction if `whole_pieces`. Writes zeros beyond
// the head's width. If the row is not `real`, writes zeros and reads nothing.
template <typename Element>
LS_DEVICE void CopyPiece(unsigned char* to, const Element* row, int piece, int head_width, bool whole_pieces,
                         bool real) {
  constexpr int kElements = 16 / sizeof(Element);
  const int first = piece * kElements;
  if (whole_pieces) {
    CopyAsync(to, row + first, real && first < head_width);
    return;
  }
  Words<4> words = {};
  LS_UNROLL
  for (int e = 0; e < kElements; ++e) {
    if (!real || first + e >= head_width) continue;
    if constexpr (sizeof(Element) == 2) {
      words.word[e / 2] |= static_cast<uint32_t>(row[first + e].bits) << (e % 2 * 16);
    } else {
      words.word[e] = BitsOf(row[first + e]);
    }
  }
  Store<4>(to, words);
}

template <typename Element>
LS_DEVICE const Element* HeadOfRow(const Rows& rows, int64_t row, int first_channel) {
  return static_cast<const Element*>(rows.data) + row * rows.stride + first_channel;
}

}  // namespace longshort::models::cuda
