// One thread block for a split of an item's rows, a head and 16 of its vectors. Then one block per item, vector and
// part (keys, values) merges the splits and normalises.
#include "models/device/device.h"
#include "models/ops/landmarks/landmarks_kernels.h"
#include "models/ops/products/tile_products.h"
#include "models/ops/rows/folded_rows.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpThreads;
// The rows of a fragment are vectors; its columns are the item's rows.
constexpr int kGroupVectors = kWarpRows;
// In floats. Puts the rows of a fragment's 8-byte loads into different banks.
constexpr int kLogitStride = kPageRows + 8;

template <typename Element, int width>
struct MixLayout {
  using Shape = Tile<Element, width>;
  static constexpr int kKeys = 0;
  static constexpr int kValues = Shape::kBlockBytes;
  static constexpr int kLogits = 2 * Shape::kBlockBytes;
  static constexpr int kBytes = kLogits + kGroupVectors * kLogitStride * 4;
};

LS_DEVICE int64_t SplitPlace(const Landmarks& arguments, int item, int split) {
  return int64_t{item} * arguments.max_splits + split;
}
// Index of the partial sums of a head's vector. `part` selects the keys or the values.
LS_DEVICE int64_t SumsPlace(const Landmarks& arguments, int64_t split_place, int vector, int head) {
  return (split_place * arguments.rank + vector) * arguments.heads + head;
}
LS_DEVICE int64_t MixedPlace(const Landmarks& arguments, int64_t split_place, int part, int vector, int head) {
  return SumsPlace(arguments, 2 * split_place + part, vector, head);
}

// Each warp computes all weights, and mixes its share of the channels: pairs Warp() + 4 * i of 8 channels, the keys'
// pairs before the values'.
//   shared  keys, values [64][width], swizzled; logits [16][kLogitStride] float32, in units of log2
template <typename Element, int width>
LS_KERNEL(kThreads, 3)
void MixSplits(LS_ARGUMENTS Landmarks arguments) {
  using Shape = Tile<Element, width>;
  using Layout = MixLayout<Element, width>;
  constexpr int kPairs = width / 16, kPairsOfWarp = 2 * kPairs / kWarps;
  const int groups = (arguments.rank + kGroupVectors - 1) / kGroupVectors;
  const int split = Block().x, head = Block().y / groups, item = Block().z;
  const int first_vector = Block().y % groups * kGroupVectors;
  const ItemRows range = RangeOf(arguments.ranges, item);
  const int64_t before = int64_t{split} * kLandmarkSplitRows;
  if (before >= range.rows) return;
  const int rows =
      static_cast<int>(range.rows - before < kLandmarkSplitRows ? range.rows - before : kLandmarkSplitRows);
  const int64_t first_row = range.first_row + before;
  const int first_channel = head * arguments.head_width, head_width = arguments.head_width;
  const bool whole_pieces =
      HasWholePieces<Element>(arguments.keys, head_width) && HasWholePieces<Element>(arguments.values, head_width);
  const int group = Lane() / 4, quad = Lane() % 4;
  unsigned char* const shared = SharedMemory();
  auto* const logits = reinterpret_cast<float*>(shared + Layout::kLogits);

  FoldedRows folded;
  float mixed[kPairsOfWarp][2][4] = {};
  for (int first = 0; first < rows; first += kPageRows) {
    for (int i = Thread(); i < kPageRows * Shape::kPiecesOfRow; i += kThreads) {
      const int row = i / Shape::kPiecesOfRow, piece = i % Shape::kPiecesOfRow;
      const int place = PieceOffset<Shape::kPiecesOfRow>(row, piece);
      // Values beyond the last row must not be NaN: they are multiplied by 0.
      const bool real = first + row < rows;
      const int64_t from = real ? first_row + first + row : first_row;
      CopyPiece(shared + Layout::kKeys + place, HeadOfRow<Element>(arguments.keys, from, first_channel), piece,
                head_width, whole_pieces, real);
      CopyPiece(shared + Layout::kValues + place, HeadOfRow<Element>(arguments.values, from, first_channel), piece,
                head_width, whole_pieces, real);
    }
    CommitCopies();
    for (int i = Thread(); i < kPageRows * kGroupVectors; i += kThreads) {
      const int row = i / kGroupVectors, vector = i % kGroupVectors;
      float logit = kMinusInfinity;
      if (first + row < rows && first_vector + vector < arguments.rank) {
        const Element* const from = HeadOfRow<Element>(arguments.logits, first_row + first + row,
                                                       head * arguments.rank + first_vector + vector);
        logit = Multiply(ToFloat(*from), kLog2E);
      }
      logits[vector * kLogitStride + row] = logit;
    }
    WaitForCopies<0>();
    SyncBlock();

    float scores[kPageRows / 8][4];
    LS_UNROLL
    for (int n = 0; n < kPageRows / 8; ++n) {
      LS_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Words<2> two = Load<2>(logits + (group + 8 * half) * kLogitStride + 8 * n + 2 * quad);
        scores[n][2 * half] = FloatOf(two.word[0]);
        scores[n][2 * half + 1] = FloatOf(two.word[1]);
      }
    }
    BlockProbabilities<Element> block;
    folded.Fold(scores, block);
    LS_UNROLL
    for (int i = 0; i < kPairsOfWarp; ++i) {
      const int pair = Warp() + kWarps * i;
      MixBlock<Element, width>(mixed[i], block, shared + (pair < kPairs ? Layout::kKeys : Layout::kValues),
                               pair % kPairs);
    }
    SyncBlock();  // before the next rows overwrite these
  }

  const int64_t split_place = SplitPlace(arguments, item, split);
  LS_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int vector = first_vector + group + 8 * half;
    if (vector >= arguments.rank) continue;
    LS_UNROLL
    for (int i = 0; i < kPairsOfWarp; ++i) {
      const int pair = Warp() + kWarps * i;
      const int64_t place = MixedPlace(arguments, split_place, pair < kPairs ? 0 : 1, vector, head);
      LS_UNROLL
      for (int n = 0; n < 2; ++n) {
        Store<2>(arguments.partial_outputs + place * width + pair % kPairs * 16 + 8 * n + 2 * quad,
                 {{BitsOf(mixed[i][n][2 * half]), BitsOf(mixed[i][n][2 * half + 1])}});
      }
    }
    if (Warp() == 0 && quad == 0) {
      float* const sums = arguments.partial_sums + 2 * SumsPlace(arguments, split_place, vector, head);
      sums[0] = folded.largest[half];
      sums[1] = folded.sums[half];
    }
  }
}

// Vectors of an item before its landmarks.
constexpr int VectorsBefore(const Landmarks& arguments) { return arguments.keys_before.data == nullptr ? 0 : 1; }

LS_KERNEL(kThreads, 8) void MergeSplits(LS_ARGUMENTS Landmarks arguments) {
  const int index = Block().x, before = VectorsBefore(arguments), vectors = before + arguments.rank;
  const int vector = index % vectors - before, part = index / vectors % 2, item = index / (2 * vectors);
  const Rows& to = part == 0 ? arguments.landmark_keys : arguments.landmark_values;
  const int64_t row = int64_t{item} * vectors + before + vector;
  const Rows& from = part == 0 ? arguments.keys_before : arguments.values_before;
  if (vector < 0 && !arguments.norms_before) {
    for (int c = Thread(); c < arguments.heads * arguments.head_width; c += kThreads) {
      SetRowElement(arguments.element, to.data, row * to.stride + c,
                    RowElement(arguments.element, from.data, item * from.stride + c));
    }
    return;
  }
  const int splits = static_cast<int>(LandmarkSplitsOf(RangeOf(arguments.ranges, item).rows));
  const int padded = static_cast<int>(PaddedHeadWidth(arguments.head_width));
  const auto merged_channel = [&](int c) {
    if (vector < 0) return SomeFloats<1>{{RowElement(arguments.element, from.data, item * from.stride + c)}};
    const int head = c / arguments.head_width, channel = c % arguments.head_width;
    float merged = 0, largest = kMinusInfinity, sum = 0;
    for (int split = 0; split < splits; ++split) {
      const int64_t place = SplitPlace(arguments, item, split);
      const Words<2> sums = LoadConstant<2>(arguments.partial_sums + 2 * SumsPlace(arguments, place, vector, head));
      const MergeFactors factors = Merge(largest, FloatOf(sums.word[0]));
      sum = Merged(sum, FloatOf(sums.word[1]), factors);
      const int64_t from = MixedPlace(arguments, place, part, vector, head) * padded + channel;
      merged = Merged(merged, FloatOf(LoadConstant<1>(arguments.partial_outputs + from).word[0]), factors);
    }
    return SomeFloats<1>{{Multiply(merged, Reciprocal(sum))}};
  };
  NormalizeRow<1, kThreads>(reinterpret_cast<float*>(SharedMemory()), arguments.heads * arguments.head_width,
                            part == 0 ? arguments.key_norm : arguments.value_norm, arguments.epsilon, merged_channel,
                            [&](int c, const SomeFloats<1>& floats) {
                              SetRowElement(arguments.element, to.data, row * to.stride + c, floats.value[0]);
                            });
}

template <typename Element, int width>
KernelCall MixCall(const Landmarks& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.max_splits);
  shape.grid.y = static_cast<unsigned>(arguments.heads * ((arguments.rank + kGroupVectors - 1) / kGroupVectors));
  shape.grid.z = static_cast<unsigned>(arguments.items);
  shape.threads = kThreads;
  shape.shared_bytes = MixLayout<Element, width>::kBytes;
  return MakeCall<MixSplits<Element, width>>("MixSplits", shape, arguments);
}

}  // namespace

KernelCall MixSplitsCall(const Landmarks& arguments) {
  return ForTypeAndWidth(arguments.element, arguments.head_width, [&](auto element, auto width) {
    return MixCall<decltype(element), decltype(width)::value>(arguments);
  });
}

KernelCall MergeSplitsCall(const Landmarks& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.items * 2 * (VectorsBefore(arguments) + arguments.rank));
  shape.threads = kThreads;
  shape.shared_bytes = NormSharedBytes(arguments.heads * arguments.head_width, kThreads);
  return MakeCall<MergeSplits>("MergeSplits", shape, arguments);
}

}  // namespace longshort::models::cuda
