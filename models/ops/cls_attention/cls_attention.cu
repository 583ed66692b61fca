// One thread block for 64 rows, an item and a head; then one warp per item and head merges their results.
#include "models/device/device.h"
#include "models/ops/cls_attention/cls_attention_kernels.h"
#include "models/ops/products/tile_products.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;

LS_DEVICE float Element(const ClsAttention& arguments, const Rows& rows, int64_t row, int head, int channel) {
  if (channel >= arguments.head_width) return 0.0f;
  return RowElement(arguments.element, rows.data, row * rows.stride + head * arguments.head_width + channel);
}
LS_DEVICE float ScoreScale(const ClsAttention& arguments) { return Multiply(arguments.scale, kLog2E); }

// Offsets in floats. The row stride is odd, so the threads of a warp, two per row, have no bank conflict.
template <int width>
struct SplitLayout {
  static constexpr int kStride = width + 1;
  static constexpr int kGroups = kThreads / width;  // groups that mix the same channels, of different rows
  static constexpr int kRows = 0;
  static constexpr int kQuery = kRows + kPageRows * kStride;
  static constexpr int kScores = kQuery + width;
  static constexpr int kMixed = kScores + kPageRows;  // [kGroups][width]
  static constexpr int kFloats = kMixed + kThreads;
};

// Loads a head's channels of up to 64 rows, and zeros for the others.
template <int width>
LS_DEVICE void LoadRows(const ClsAttention& arguments, const Rows& from, int64_t first, int rows, int head,
                        float* shared) {
  using Layout = SplitLayout<width>;
  for (int i = Thread(); i < kPageRows * width; i += kThreads) {
    const int row = i / width, channel = i % width;
    shared[Layout::kRows + row * Layout::kStride + channel] =
        row < rows ? Element(arguments, from, first + row, head, channel) : 0.0f;
  }
}

//   shared  rows [64][width + 1] (keys, then values), query [width], scores [64], mixed rows [groups][width]; float32
template <int width>
LS_KERNEL(kThreads)
void AttendToRows(LS_ARGUMENTS ClsAttention arguments) {
  using Layout = SplitLayout<width>;
  const int split = Block().x, head = Block().y, item = Block().z, thread = Thread();
  const ItemRows range = RangeOf(arguments.ranges, item);
  const int64_t first = range.first_row + int64_t{split} * kPageRows, left = range.rows - int64_t{split} * kPageRows;
  if (left <= 0) return;
  const int rows = left < kPageRows ? static_cast<int>(left) : kPageRows;
  float* const shared = reinterpret_cast<float*>(SharedMemory());
  LoadRows<width>(arguments, arguments.row_keys, first, rows, head, shared);
  if (thread < width) shared[Layout::kQuery + thread] = Element(arguments, arguments.queries, item, head, thread);
  SyncBlock();

  // Scores: two threads per row, each with half of the channels.
  {
    const int row = thread / 2, first_channel = thread % 2 * (width / 2);
    const float* const key = shared + Layout::kRows + row * Layout::kStride + first_channel;
    const float* const query = shared + Layout::kQuery + first_channel;
    float product = 0;
    for (int c = 0; c < width / 2; ++c) product = MultiplyAdd(query[c], key[c], product);
    product = Add(product, ShuffleXor(product, 1));
    if (thread % 2 == 0) {
      shared[Layout::kScores + row] = row < rows ? Multiply(product, ScoreScale(arguments)) : kMinusInfinity;
    }
  }
  SyncBlock();

  // Softmax; every warp computes all of it.
  const float scores[2] = {shared[Layout::kScores + Lane()], shared[Layout::kScores + kWarpThreads + Lane()]};
  float largest = Larger(scores[0], scores[1]);
  for (int with = kWarpThreads / 2; with > 0; with /= 2) largest = Larger(largest, ShuffleXor(largest, with));
  const float probabilities[2] = {Probability(scores[0], largest), Probability(scores[1], largest)};
  const float sum = WarpSum(Add(probabilities[0], probabilities[1]));
  SyncBlock();
  if (Warp() == 0) {
    shared[Layout::kScores + Lane()] = probabilities[0];
    shared[Layout::kScores + kWarpThreads + Lane()] = probabilities[1];
  }
  // All scores are computed, so the keys' place is free.
  if (arguments.row_values.data != arguments.row_keys.data)
    LoadRows<width>(arguments, arguments.row_values, first, rows, head, shared);
  SyncBlock();

  const int64_t place = (int64_t{item} * arguments.heads + head) * arguments.max_splits + split;
  constexpr int kRowsOfGroup = kPageRows / Layout::kGroups;
  const int channel = thread % width, first_row = thread / width * kRowsOfGroup;
  float mixed = 0;
  for (int row = first_row; row < first_row + kRowsOfGroup; ++row) {
    mixed = MultiplyAdd(shared[Layout::kScores + row], shared[Layout::kRows + row * Layout::kStride + channel], mixed);
  }
  shared[Layout::kMixed + thread] = mixed;
  SyncBlock();
  if (thread < width) {
    for (int group = 1; group < Layout::kGroups; ++group) {
      mixed = Add(mixed, shared[Layout::kMixed + group * width + thread]);
    }
    arguments.partial_outputs[place * width + thread] = mixed;
  }
  if (thread == 0) {
    arguments.partial_sums[2 * place] = largest;
    arguments.partial_sums[2 * place + 1] = sum;
  }
}

template <int width>
LS_KERNEL(kWarpThreads)
void MergeRows(LS_ARGUMENTS ClsAttention arguments) {
  constexpr int kChannels = width / kWarpThreads;
  const int item = Block().x, head = Block().y, first_channel = Lane() * kChannels;
  const int splits = static_cast<int>(SplitsOf(RangeOf(arguments.ranges, item).rows));
  const int64_t first = (int64_t{item} * arguments.heads + head) * arguments.max_splits;
  const float* const outputs = arguments.partial_outputs + first * width + first_channel;
  const float* const sums = arguments.partial_sums + 2 * first;

  float merged[kChannels], product = 0;
  LS_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    merged[c] = Element(arguments, arguments.values, item, head, first_channel + c);
    product = MultiplyAdd(Element(arguments, arguments.queries, item, head, first_channel + c),
                          Element(arguments, arguments.keys, item, head, first_channel + c), product);
  }
  float largest = Multiply(WarpSum(product), ScoreScale(arguments)), sum = 1;
  MergeParts<width>(merged, largest, sum, splits, outputs, sums);
  const float scale = Reciprocal(sum);
  LS_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    const int channel = first_channel + c;
    if (channel >= arguments.head_width) continue;
    SetRowElement(arguments.element, arguments.output.data,
                  item * arguments.output.stride + head * arguments.head_width + channel, Multiply(merged[c], scale));
  }
}

template <int width>
KernelCall AttendCall(const ClsAttention& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.max_splits);
  shape.grid.y = static_cast<unsigned>(arguments.heads);
  shape.grid.z = static_cast<unsigned>(arguments.items);
  shape.threads = kThreads;
  shape.shared_bytes = sizeof(float) * SplitLayout<width>::kFloats;
  return MakeCall<AttendToRows<width>>("AttendToRows", shape, arguments);
}
template <int width>
KernelCall MergeCall(const ClsAttention& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.items);
  shape.grid.y = static_cast<unsigned>(arguments.heads);
  shape.threads = kWarpThreads;
  return MakeCall<MergeRows<width>>("MergeRows", shape, arguments);
}

}  // namespace

KernelCall AttendToRowsCall(const ClsAttention& arguments) {
  return ForWidth(arguments.head_width, [&](auto width) { return AttendCall<decltype(width)::value>(arguments); });
}

KernelCall MergeRowsCall(const ClsAttention& arguments) {
  return ForWidth(arguments.head_width, [&](auto width) { return MergeCall<decltype(width)::value>(arguments); });
}

}  // namespace longshort::models::cuda
