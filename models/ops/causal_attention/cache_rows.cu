#include "models/device/device.h"
#include "models/ops/causal_attention/cache_rows.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;

bool IsAligned(const Rows& rows, int width) { return width % 4 == 0 && cuda::IsAligned(rows); }

// The address of a chunk's row on its open chunk page.
LS_DEVICE float* OpenRow(const ChunkRows& rows, int64_t page, int64_t row) {
  const int width = rows.heads * rows.head_width;
  return rows.open_chunks + page * rows.page_floats + row * OpenRowFloats(width, rows.heads * rows.chunk_rank);
}

// A thread block writes a row's key or its value (part 0, 1): normalised in shared memory, then converted and stored,
// 16 bytes per thread.
//   shared  that of NormalizeRow; x becomes the normalised row
template <typename Element, int n>
LS_DEVICE void WriteToPage(const WriteRows& arguments, const NewKeys& rows, int64_t row, int part) {
  constexpr int kElements = 16 / sizeof(Element);
  const int64_t slot = rows.slots[row];
  if (slot < 0) return;
  const int width = arguments.heads * arguments.head_width;
  float* const normalized = reinterpret_cast<float*>(SharedMemory());
  const int64_t from = row * rows.keys_values.stride + part * width;
  NormalizeRow<n, kThreads>(
      normalized, width, rows.norm, arguments.epsilon,
      [&](int c) {
        SomeFloats<n> floats = LoadRow<n>(rows.row, rows.keys_values.data, from + c);
        if (rows.biases == nullptr) return floats;
        LS_UNROLL
        for (int i = 0; i < n; ++i) floats.value[i] = Add(floats.value[i], rows.biases[part * width + c + i]);
        return floats;
      },
      [&](int c, const SomeFloats<n>& floats) {
        LS_UNROLL
        for (int i = 0; i < n; ++i) normalized[c + i] = floats.value[i];
      });
  SyncBlock();

  const int padded = static_cast<int>(PaddedHeadWidth(arguments.head_width)), pieces = padded / kElements;
  Element* const page = static_cast<Element*>(rows.pages) + slot / kPageRows * arguments.page_elements;
  for (int i = Thread(); i < arguments.heads * pieces; i += kThreads) {
    const int head = i / pieces, first = i % pieces * kElements;
    float values[kElements];
    LS_UNROLL
    for (int e = 0; e < kElements; ++e) {
      const int channel = first + e;
      values[e] = channel < arguments.head_width ? normalized[head * arguments.head_width + channel] : 0.0f;
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

template <int n>
LS_DEVICE void Keep(const KeptRows& kept, int64_t index) {
  const ChunkRows& rows = kept.rows;
  const int64_t row = kept.indices[index], slot = kept.slots[index];
  if (row < 0) return;
  float* const to = OpenRow(rows, slot / rows.chunk_size, slot % rows.chunk_size);
  const int width = rows.heads * rows.head_width, columns = rows.heads * rows.chunk_rank;
  for (int c = n * Thread(); c < width; c += n * kThreads) {
    StoreRow<n>(ElementType::kFloat, to, c,
                LoadRow<n>(ElementType::kFloat, rows.inputs.data, row * rows.inputs.stride + c));
  }
  for (int c = n * Thread(); c < 2 * width; c += n * kThreads) {
    StoreRow<n>(ElementType::kFloat, to, width + c,
                LoadRow<n>(rows.row, rows.keys_values.data, row * rows.keys_values.stride + c));
  }
  for (int c = Thread(); c < columns; c += kThreads) {
    to[3 * width + c] = RowElement(rows.row, rows.logits.data, row * rows.logits.stride + c);
  }
}

// Two thread blocks for each row of window, memory and segment pages, then one for each kept row.
template <typename Element, int n>
LS_KERNEL(kThreads)
void Write(LS_ARGUMENTS WriteRows arguments) {
  int64_t block = Block().x;
  const int64_t window = 2 * arguments.window.count, memory = 2 * arguments.memory.count;
  const int64_t segment = 2 * arguments.segment.count;
  if (block >= window + memory + segment) return Keep<n>(arguments.kept, block - window - memory - segment);
  const NewKeys& rows = block < window            ? arguments.window
                        : block < window + memory ? arguments.memory
                                                  : arguments.segment;
  block -= block < window ? 0 : block < window + memory ? window : window + memory;
  WriteToPage<Element, n>(arguments, rows, block / 2, static_cast<int>(block % 2));
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
  const ElementType from_type = part == 0 ? ElementType::kFloat : rows.row;
  const int from_channel = (part == 2 ? width : 0) + channel;
  const Rows& to = part == 0 ? arguments.mixed_inputs : arguments.mixed_keys_values;
  for (int t = 0; t < rank; ++t) {
    const int column = channel / rows.head_width * rank + t - first_column;
    SomeFloats<n> mixed = {};
    for (int i = 0; i < size; ++i) {
      const SomeFloats<n> row =
          i < kept ? LoadRow<n>(ElementType::kFloat, OpenRow(rows, page, i), part * width + channel)
                   : LoadRow<n>(from_type, from.data, (end - (size - 1 - i)) * from.stride + from_channel);
      const float weight = weights[i * columns + column];
      LS_UNROLL
      for (int c = 0; c < n; ++c) mixed.value[c] = MultiplyAdd(weight, row.value[c], mixed.value[c]);
    }
    StoreRow<n>(part == 0 ? rows.row : ElementType::kFloat, to.data, (chunk * rank + t) * to.stride + from_channel,
                mixed);
  }
}

template <typename Element>
KernelCall WriteCall(const WriteRows& arguments) {
  const int width = arguments.heads * arguments.head_width;
  bool aligned = arguments.kept.count == 0 ||
                 (IsAligned(arguments.kept.rows.inputs, width) && IsAligned(arguments.kept.rows.keys_values, width) &&
                  arguments.kept.rows.page_floats % 4 == 0);
  int64_t page_rows = 0;
  for (const NewKeys* const rows : {&arguments.window, &arguments.memory, &arguments.segment}) {
    page_rows += rows->count;
    aligned = aligned && (rows->count == 0 || (IsAligned(rows->keys_values, width) && cuda::IsAligned(rows->norm)));
  }
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(2 * page_rows + arguments.kept.count);
  shape.threads = kThreads;
  shape.shared_bytes = NormSharedBytes(width, kThreads);
  return aligned ? MakeCall<Write<Element, 4>>("Write", shape, arguments)
                 : MakeCall<Write<Element, 1>>("Write", shape, arguments);
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

KernelCall WriteRowsCall(const WriteRows& arguments) {
  return arguments.element == ElementType::kFloat ? WriteCall<float>(arguments) : WriteCall<BFloat16>(arguments);
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
