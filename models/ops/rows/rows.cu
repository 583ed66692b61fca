#include "models/device/device.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;

// One thread for n channels of a row: rows along x, channels along y.
template <int n>
LaunchShape ShapeByChannels(int64_t count, int width) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(count);
  shape.grid.y = BlocksFor(width, kThreads * n);
  shape.threads = kThreads;
  return shape;
}
template <int n>
LS_DEVICE int ThreadChannel() {
  return (Block().y * kThreads + Thread()) * n;
}

// Stores n channels of a float32 row, and of its copy.
template <int n>
LS_DEVICE void StoreWithCopy(const Rows& output, const Rows& copy, int64_t row, int channel,
                             const SomeFloats<n>& floats) {
  StoreRow<n>(ElementType::kFloat, output.data, row * output.stride + channel, floats);
  if (copy.data != nullptr) StoreRow<n>(ElementType::kBFloat16, copy.data, row * copy.stride + channel, floats);
}

template <int n>
LS_KERNEL(kThreads)
void Embed(LS_ARGUMENTS EmbedRows arguments) {
  const int64_t row = Block().x;
  const int channel = ThreadChannel<n>();
  if (channel >= arguments.width) return;
  SomeFloats<n> floats =
      LoadRow<n>(ElementType::kFloat, arguments.table, arguments.tokens[row] * arguments.width + channel);
  LS_UNROLL
  for (int i = 0; i < n; ++i) floats.value[i] = Multiply(floats.value[i], arguments.scale);
  StoreWithCopy<n>(arguments.output, arguments.copy, row, channel, floats);
}

// Returns n channels of input + addend + bias of a row.
template <int n>
LS_DEVICE SomeFloats<n> SumOfRows(const Rows& input, ElementType addend_type, const Rows& addend,
                                  const float* addend_bias, int64_t row, int channel) {
  SomeFloats<n> sum = LoadRow<n>(ElementType::kFloat, input.data, row * input.stride + channel);
  if (addend.data == nullptr) return sum;
  SomeFloats<n> added = LoadRow<n>(addend_type, addend.data, row * addend.stride + channel);
  LS_UNROLL
  for (int i = 0; i < n; ++i) {
    if (addend_bias != nullptr) added.value[i] = Add(added.value[i], addend_bias[channel + i]);
    sum.value[i] = Add(sum.value[i], added.value[i]);
  }
  return sum;
}

// A thread block per row.
template <int n>
LS_KERNEL(kThreads)
void Norm(LS_ARGUMENTS NormRows arguments) {
  const int64_t row = Block().x;
  NormalizeRow<n, kThreads>(
      reinterpret_cast<float*>(SharedMemory()), arguments.width, arguments.norm, arguments.epsilon,
      [&](int c) {
        return SumOfRows<n>(arguments.input, arguments.addend_type, arguments.addend, arguments.addend_bias, row, c);
      },
      [&](int c, const SomeFloats<n>& floats) { StoreWithCopy<n>(arguments.output, arguments.copy, row, c, floats); });
}

template <int n>
LS_KERNEL(kThreads)
void Activate(LS_ARGUMENTS ActivateRows arguments) {
  const int channel = ThreadChannel<n>();
  if (channel >= arguments.width) return;
  const int64_t index = Block().x * arguments.rows.stride + channel;
  SomeFloats<n> floats = LoadRow<n>(arguments.row, arguments.rows.data, index);
  LS_UNROLL
  for (int i = 0; i < n; ++i) {
    float x = floats.value[i];
    if (arguments.bias != nullptr) x = Add(x, arguments.bias[channel + i]);
    floats.value[i] = Activated(arguments.activation, x);
  }
  StoreRow<n>(arguments.row, arguments.rows.data, index, floats);
}

template <int n>
LS_KERNEL(kThreads)
void Gather(LS_ARGUMENTS GatherRows arguments) {
  const int channel = ThreadChannel<n>();
  const int64_t row = Block().x, from = arguments.indices[row];
  if (channel >= arguments.width || from < 0) return;
  const SomeFloats<n> sum =
      SumOfRows<n>(arguments.input, arguments.row, arguments.addend, arguments.addend_bias, from, channel);
  StoreRow<n>(arguments.row, arguments.output.data, row * arguments.output.stride + channel, sum);
}

template <int n>
KernelCall NormCall(const NormRows& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.count);
  shape.threads = kThreads;
  shape.shared_bytes = NormSharedBytes(arguments.width, kThreads);
  return MakeCall<Norm<n>>("Norm", shape, arguments);
}

// Means of rows: one thread block per split and 32 channels, then one per item and 32 channels; a thread has one
// channel. Each warp sums its share of the rows, and the first warp adds up the warps' sums.
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

KernelCall EmbedRowsCall(const EmbedRows& arguments) {
  const Rows table = {const_cast<float*>(arguments.table), arguments.width};
  if (arguments.width % 4 == 0 && IsAligned(table) && IsAligned(arguments.output) && IsAligned(arguments.copy)) {
    return MakeCall<Embed<4>>("Embed", ShapeByChannels<4>(arguments.count, arguments.width), arguments);
  }
  return MakeCall<Embed<1>>("Embed", ShapeByChannels<1>(arguments.count, arguments.width), arguments);
}

KernelCall NormRowsCall(const NormRows& arguments) {
  const bool aligned = arguments.width % 4 == 0 && IsAligned(arguments.input) && IsAligned(arguments.addend) &&
                       IsAligned(arguments.norm) && IsAligned(arguments.output) && IsAligned(arguments.copy);
  return aligned ? NormCall<4>(arguments) : NormCall<1>(arguments);
}

KernelCall ActivateRowsCall(const ActivateRows& arguments) {
  if (arguments.width % 4 == 0 && IsAligned(arguments.rows)) {
    return MakeCall<Activate<4>>("Activate", ShapeByChannels<4>(arguments.count, arguments.width), arguments);
  }
  return MakeCall<Activate<1>>("Activate", ShapeByChannels<1>(arguments.count, arguments.width), arguments);
}

KernelCall GatherRowsCall(const GatherRows& arguments) {
  if (arguments.width % 4 == 0 && IsAligned(arguments.input) && IsAligned(arguments.addend) &&
      IsAligned(arguments.output)) {
    return MakeCall<Gather<4>>("Gather", ShapeByChannels<4>(arguments.count, arguments.width), arguments);
  }
  return MakeCall<Gather<1>>("Gather", ShapeByChannels<1>(arguments.count, arguments.width), arguments);
}

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
