#include "models/gpu/cache_rows.h"
#include "models/gpu/device.h"
#include "models/gpu/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpThreads;

bool IsAligned(const Rows& rows, int width) {
  return width % 4 == 0 && rows.stride % 4 == 0 && reinterpret_cast<uintptr_t>(rows.data) % 16 == 0;
}

// A warp writes a row's key or its value: normalised in shared memory, then converted and stored, 16 bytes per lane.
//   shared  [kWarps][width] float32
template <typename Element, int n>
LS_KERNEL(kThreads)
void Append(LS_ARGUMENTS AppendRows arguments) {
  constexpr int kElements = 16 / sizeof(Element);
  const int64_t item = int64_t{Block().x} * kWarps + Warp();
  if (item >= 2 * arguments.count) return;
  const int64_t row = item / 2;
  const int part = static_cast<int>(item % 2);
  const int64_t slot = arguments.slots[row];
  if (slot < 0) return;
  const int width = arguments.heads * arguments.head_width;
  float* const shared = reinterpret_cast<float*>(SharedMemory()) + Warp() * width;
  const int64_t from = row * arguments.keys_values.stride + part * width;
  for (int c = n * Lane(); c < width; c += n * kWarpThreads) {
    const SomeFloats<n> floats = LoadRow<n>(arguments.row, arguments.keys_values.data, from + c);
    LS_UNROLL
    for (int i = 0; i < n; ++i) shared[c + i] = floats.value[i];
  }
  if (arguments.gain != nullptr) NormalizeRow<n>(shared, width, arguments.epsilon, arguments.gain, arguments.bias);
  SyncWarp();

  const int padded = static_cast<int>(PaddedHeadWidth(arguments.head_width)), pieces = padded / kElements;
  Element* const page = static_cast<Element*>(arguments.pages) + slot / kPageRows * arguments.page_elements;
  for (int i = Lane(); i < arguments.heads * pieces; i += kWarpThreads) {
    const int head = i / pieces, first = i % pieces * kElements;
    float values[kElements];
    LS_UNROLL
    for (int e = 0; e < kElements; ++e) {
      const int channel = first + e;
      values[e] = channel < arguments.head_width ? shared[head * arguments.head_width + channel] : 0.0f;
    }
    Words<4> words;
    LS_UNROLL
    for (int w = 0; w < 4; ++w) {
      if constexpr (sizeof(Element) == 2) {
        words.word[w] = PackBFloat16(values[2 * w], values[2 * w + 1]);
      } else {
        words.word[w] = BitsOf(values[w]);
      }
    }
    const int64_t place = (int64_t{2 * head + part} * kPageRows + slot % kPageRows) * padded + first;
    Store<4>(page + place, words);
  }
}

// The address of a chunk's row on its open chunk page.
LS_DEVICE float* OpenRow(const ChunkRows& rows, int64_t page, int64_t row) {
  const int width = rows.heads * rows.head_width;
  return rows.open_chunks + page * rows.page_floats + row * OpenRowFloats(width, rows.heads * rows.chunk_rank);
}

LS_KERNEL(kThreads) void Keep(LS_ARGUMENTS KeepRows arguments) {
  const ChunkRows& rows = arguments.rows;
  const int64_t row = arguments.kept_rows[Block().x], slot = arguments.kept_slots[Block().x];
  if (row < 0) return;
  float* const to = OpenRow(rows, slot / rows.chunk_size, slot % rows.chunk_size);
  const int width = rows.heads * rows.head_width, columns = rows.heads * rows.chunk_rank;
  for (int c = Thread(); c < width; c += kThreads)
    to[c] = RowElement(rows.row, rows.inputs.data, row * rows.inputs.stride + c);
  for (int c = Thread(); c < 2 * width; c += kThreads) {
    to[width + c] = RowElement(rows.row, rows.keys_values.data, row * rows.keys_values.stride + c);
  }
  for (int c = Thread(); c < columns; c += kThreads) {
    to[3 * width + c] = RowElement(rows.row, rows.logits.data, row * rows.logits.stride + c);
  }
}

// A thread block mixes some channels of one chunk's inputs, keys or values (part 0, 1, 2). A thread has n channels of
// one head.
//   shared  [chunk_size][columns of these heads] float32: the weights
template <int n>
LS_KERNEL(kThreads, 8)
void Mix(LS_ARGUMENTS MixChunks arguments) {
  const ChunkRows& rows = arguments.rows;
  const int64_t chunk = Block().x, end = arguments.chunk_ends[chunk];
  if (end < 0) return;
  const int64_t kept = arguments.chunk_kept[chunk], page = arguments.chunk_pages[chunk];
  const int part = Block().y, width = rows.heads * rows.head_width, size = rows.chunk_size, rank = rows.chunk_rank;
  const int first_channel = Block().z * kThreads * n;
  const int last_channel = first_channel + kThreads * n < width ? first_channel + kThreads * n - 1 : width - 1;
  const int first_column = first_channel / rows.head_width * rank;
  const int columns = (last_channel / rows.head_width + 1) * rank - first_column;
  float* const weights = reinterpret_cast<float*>(SharedMemory());

  for (int column = Thread(); column < columns; column += kThreads) {
    const auto logit = [&](int i) {
      return i < kept ? OpenRow(rows, page, i)[3 * width + first_column + column]
                      : RowElement(rows.row, rows.logits.data,
                                   (end - (size - 1 - i)) * rows.logits.stride + first_column + column);
    };
    float largest = kMinusInfinity, sum = 0;
    for (int i = 0; i < size; ++i) largest = Larger(largest, logit(i));
    for (int i = 0; i < size; ++i) {
      const float weight = Exp2(Multiply(Add(logit(i), -largest), kLog2E));
      weights[i * columns + column] = weight;
      sum = Add(sum, weight);
    }
    const float scale = Reciprocal(sum);
    for (int i = 0; i < size; ++i) weights[i * columns + column] = Multiply(weights[i * columns + column], scale);
  }
  SyncBlock();

  const int channel = first_channel + Thread() * n;
  if (channel > last_channel) return;
  const Rows& from = part == 0 ? rows.inputs : rows.keys_values;
  const int from_channel = (part == 2 ? width : 0) + channel;
  const Rows& to = part == 0 ? arguments.mixed_inputs : arguments.mixed_keys_values;
  for (int t = 0; t < rank; ++t) {
    const int column = channel / rows.head_width * rank + t - first_column;
    SomeFloats<n> mixed = {};
    for (int i = 0; i < size; ++i) {
      const SomeFloats<n> row =
          i < kept ? LoadRow<n>(ElementType::kFloat, OpenRow(rows, page, i), part * width + channel)
                   : LoadRow<n>(rows.row, from.data, (end - (size - 1 - i)) * from.stride + from_channel);
      const float weight = weights[i * columns + column];
      LS_UNROLL
      for (int c = 0; c < n; ++c) mixed.value[c] = MultiplyAdd(weight, row.value[c], mixed.value[c]);
    }
    StoreRow<n>(rows.row, to.data, (chunk * rank + t) * to.stride + from_channel, mixed);
  }
}

template <typename Element, int n>
KernelCall AppendCall(const AppendRows& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>((2 * arguments.count + kWarps - 1) / kWarps);
  shape.threads = kThreads;
  shape.shared_bytes = sizeof(float) * kWarps * arguments.heads * arguments.head_width;
  return MakeCall<Append<Element, n>>("Append", shape, arguments);
}
template <typename Element>
KernelCall AppendCallOf(const AppendRows& arguments) {
  return IsAligned(arguments.keys_values, arguments.heads * arguments.head_width) ? AppendCall<Element, 4>(arguments)
                                                                                  : AppendCall<Element, 1>(arguments);
}

template <int n>
KernelCall MixCall(const MixChunks& arguments) {
  const ChunkRows& rows = arguments.rows;
  const int width = rows.heads * rows.head_width, channels = kThreads * n;
  const int heads = channels / rows.head_width + 2 < rows.heads ? channels / rows.head_width + 2 : rows.heads;
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.count);
  shape.grid.y = 3;
  shape.grid.z = static_cast<unsigned>((width + channels - 1) / channels);
  shape.threads = kThreads;
  shape.shared_bytes = sizeof(float) * rows.chunk_size * heads * rows.chunk_rank;
  return MakeCall<Mix<n>>("Mix", shape, arguments);
}

}  // namespace

KernelCall AppendRowsCall(const AppendRows& arguments) {
  return arguments.element == ElementType::kFloat ? AppendCallOf<float>(arguments) : AppendCallOf<BFloat16>(arguments);
}

KernelCall KeepRowsCall(const KeepRows& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.count);
  shape.threads = kThreads;
  return MakeCall<Keep>("Keep", shape, arguments);
}

KernelCall MixChunksCall(const MixChunks& arguments) {
  const ChunkRows& rows = arguments.rows;
  const int width = rows.heads * rows.head_width;
  const bool aligned = rows.head_width % 4 == 0 && IsAligned(rows.inputs, width) &&
                       IsAligned(rows.keys_values, width) && IsAligned(arguments.mixed_inputs, width) &&
                       IsAligned(arguments.mixed_keys_values, width) && rows.page_floats % 4 == 0;
  return aligned ? MixCall<4>(arguments) : MixCall<1>(arguments);
}

}  // namespace longshort::models::cuda
