// Attention in documents, and convolution of their values.
#include "models/device/device.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"
#include "models/ops/rows/row_tile.h"

namespace longshort::models::cuda {
namespace {

// Attention: one thread block per tile and head (row_tile.h).
struct DocumentPlaces {
  static constexpr bool kHasBias = false;

  int64_t first_row, first_key;
  int item, rows, keys;
  const WindowRows* windows;  // of the tile's rows

  LS_DEVICE int64_t QueryRow(int row) const { return first_row + row; }
  LS_DEVICE int64_t KeyRow(int key) const { return first_key + key; }
  LS_DEVICE WindowKeys KeysOf(int row) const {
    const WindowRows window = windows[row];
    return {static_cast<int>(window.begin - first_key), static_cast<int>(window.end - first_key)};
  }
};

template <typename Element, int width>
LS_KERNEL(kRowTileThreads, 2)
void AttendInDocuments(LS_ARGUMENTS DocumentAttention arguments) {
  const DocumentTile& tile = arguments.tiles[Block().x];
  if (tile.rows == 0) return;
  DocumentPlaces places;
  places.item = static_cast<int>(tile.document);
  places.first_row = tile.first_row;
  places.first_key = tile.first_key;
  places.rows = static_cast<int>(tile.rows);
  places.keys = static_cast<int>(tile.keys);
  places.windows = arguments.windows + tile.first_row;
  RowTile<Element, width, DocumentPlaces>(arguments.attention, places, Block().y).Run();
}

template <typename Element, int width>
KernelCall CallOfWidth(const DocumentAttention& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.tile_count);
  shape.grid.y = static_cast<unsigned>(arguments.attention.heads);
  shape.threads = kRowTileThreads;
  shape.shared_bytes = RowTileLayout<Element, width>::kBytes;
  return MakeCall<AttendInDocuments<Element, width>>("AttendInDocuments", shape, arguments);
}

// Convolution: one thread block for a tile of a document's rows and some channels. A thread has 4 rows and reads their
// neighbours once for all of them. Adjacent threads read the same rows, which stay in the cache.
constexpr int kThreads = 128;
constexpr int kRowsOfThread = 4;
// The threads of the same rows, each with n channels.
constexpr int kColumns = kThreads * kRowsOfThread / kTileRows;

// The n channels of a thread belong to one head.
template <int n>
LS_KERNEL(kThreads)
void ConvolveValues(LS_ARGUMENTS ValueConvolution arguments) {
  const DocumentTile& tile = arguments.tiles[Block().x];
  const int first = Thread() / kColumns * kRowsOfThread, channel = (Block().y * kColumns + Thread() % kColumns) * n;
  if (first >= tile.rows || channel >= arguments.heads * arguments.head_width) return;
  const ItemRows document = arguments.documents[tile.document];
  const int64_t row = tile.first_row + first, last_row = document.first_row + document.rows - 1;
  const int left = static_cast<int>(tile.rows) - first, rows = left < kRowsOfThread ? left : kRowsOfThread;
  const int kernel = arguments.kernel, half = kernel / 2;
  const int64_t first_tap = int64_t{channel / arguments.head_width} * kernel;

  int begins[kRowsOfThread];  // the position of the first tap
  float sums[kRowsOfThread][n] = {};
  LS_UNROLL
  for (int r = 0; r < kRowsOfThread; ++r) {
    begins[r] = static_cast<int>(arguments.positions[row + (r < rows ? r : 0)]) - half;
  }
  // The distance of two rows is at most that of their positions.
  const int64_t begin = row - half < document.first_row ? document.first_row : row - half;
  const int64_t end = row + rows - 1 + half > last_row ? last_row : row + rows - 1 + half;
  for (int64_t other = begin; other <= end; ++other) {
    const int position = static_cast<int>(arguments.positions[other]);
    const SomeFloats<n> value =
        LoadRow<n>(arguments.element, arguments.values.data, other * arguments.values.stride + channel);
    LS_UNROLL
    for (int r = 0; r < kRowsOfThread; ++r) {
      const int tap = position - begins[r];
      if (tap < 0 || tap >= kernel) continue;
      const float weight = RowElement(arguments.element, arguments.taps, first_tap + tap);
      LS_UNROLL
      for (int c = 0; c < n; ++c) sums[r][c] = MultiplyAdd(weight, value.value[c], sums[r][c]);
    }
  }
  LS_UNROLL
  for (int r = 0; r < kRowsOfThread; ++r) {
    if (r >= rows) continue;
    const int64_t place = (row + r) * arguments.sums.stride + channel;
    SomeFloats<n> sum = LoadRow<n>(arguments.element, arguments.sums.data, place);
    LS_UNROLL
    for (int c = 0; c < n; ++c) sum.value[c] = Add(sum.value[c], sums[r][c]);
    StoreRow<n>(arguments.element, arguments.sums.data, place, sum);
  }
}

template <int n>
KernelCall CallOf(const ValueConvolution& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.tile_count);
  shape.grid.y = BlocksFor(arguments.heads * arguments.head_width, kColumns * n);
  shape.threads = kThreads;
  return MakeCall<ConvolveValues<n>>("ConvolveValues", shape, arguments);
}

}  // namespace

KernelCall DocumentAttentionCall(const DocumentAttention& arguments) {
  return ForTypeAndWidth(arguments.attention.element, arguments.attention.head_width, [&](auto element, auto width) {
    return CallOfWidth<decltype(element), decltype(width)::value>(arguments);
  });
}

KernelCall ValueConvolutionCall(const ValueConvolution& arguments) {
  const bool aligned = arguments.head_width % 4 == 0 && IsAligned(arguments.values) && IsAligned(arguments.sums);
  return aligned ? CallOf<4>(arguments) : CallOf<1>(arguments);
}

}  // namespace longshort::models::cuda
