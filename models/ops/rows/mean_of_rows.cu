// One thread block per split and 32 channels, then one per item and 32 channels; a thread has one channel. Each warp
// sums its share of the rows, and the first warp adds up the warps' sums.
#include "models/device/device.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpThreads;

// Returns, in the first warp, this thread's channel of the sum of `count` rows. The order depends on `count` only.
//   shared  [kThreads] float32
template <typename Read>
LS_DEVICE float SumOf(int count, const Read& read) {
  float* const shared = reinterpret_cast<float*>(SharedMemory());
  const int share = (count + kWarps - 1) / kWarps, first = Warp() * share;
  const int end = first + share < count ? first + share : count;
  float sum = 0;
  for (int row = first; row < end; ++row) sum = Add(sum, read(row));
  shared[Thread()] = sum;
  SyncBlock();
  if (Warp() > 0) return 0;
  for (int warp = 1; warp < kWarps; ++warp) sum = Add(sum, shared[warp * kWarpThreads + Lane()]);
  return sum;
}

LS_KERNEL(kThreads) void SumSplits(LS_ARGUMENTS MeanOfRows arguments) {
  const int split = Block().x, channel = Block().y * kWarpThreads + Lane(), item = Block().z;
  const ItemRows range = RangeOf(arguments.ranges, item);
  const int64_t before = int64_t{split} * kMeanSplitRows, left = range.rows - before;
  if (left <= 0) return;
  const bool real = channel < arguments.width;
  const int64_t first = range.first_row + before;
  const float sum = SumOf(static_cast<int>(left < kMeanSplitRows ? left : kMeanSplitRows), [&](int row) {
    return real ? RowElement(arguments.element, arguments.rows.data, (first + row) * arguments.rows.stride + channel)
                : 0.0f;
  });
  if (Warp() > 0 || !real) return;
  arguments.partial_sums[(int64_t{item} * arguments.max_splits + split) * arguments.width + channel] = sum;
}

LS_KERNEL(kThreads) void MergeSums(LS_ARGUMENTS MeanOfRows arguments) {
  const int item = Block().x, channel = Block().y * kWarpThreads + Lane();
  const bool real = channel < arguments.width;
  const float* const sums = arguments.partial_sums + int64_t{item} * arguments.max_splits * arguments.width + channel;
  const float sum = SumOf(static_cast<int>(MeanSplitsOf(RangeOf(arguments.ranges, item).rows)),
                          [&](int split) { return real ? sums[int64_t{split} * arguments.width] : 0.0f; });
  if (Warp() > 0 || !real) return;
  SetRowElement(arguments.element, arguments.output.data, item * arguments.output.stride + channel,
                Multiply(sum, arguments.scale));
}

LaunchShape ShapeOf(const MeanOfRows& arguments) {
  LaunchShape shape;
  shape.grid.y = BlocksFor(arguments.width, kWarpThreads);
  shape.threads = kThreads;
  shape.shared_bytes = kThreads * sizeof(float);
  return shape;
}

}  // namespace

KernelCall SumSplitsCall(const MeanOfRows& arguments) {
  LaunchShape shape = ShapeOf(arguments);
  shape.grid.x = static_cast<unsigned>(arguments.max_splits);
  shape.grid.z = static_cast<unsigned>(arguments.items);
  return MakeCall<SumSplits>("SumSplits", shape, arguments);
}

KernelCall MergeSumsCall(const MeanOfRows& arguments) {
  LaunchShape shape = ShapeOf(arguments);
  shape.grid.x = static_cast<unsigned>(arguments.items);
  return MakeCall<MergeSums>("MergeSums", shape, arguments);
}

}  // namespace longshort::models::cuda
