#include "tests/models/gpu/counts/step_bytes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "models/device/pages.h"
#include "models/ops/causal_attention/attention_tile.h"
#include "models/ops/causal_attention/cache_rows.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"
#include "models/ops/products/row_products.h"
#include "models/ops/rows/rows.h"

namespace longshort::models {
namespace {

constexpr int64_t kFloatBytes = sizeof(float), kCopyBytes = 2;

template <typename Arguments>
Arguments ArgumentsOf(const KernelCall& call) {
  Arguments arguments;
  std::memcpy(&arguments, call.arguments, sizeof(arguments));
  return arguments;
}

// Padding has negative numbers.
int64_t CountOf(const int64_t* numbers, int64_t count) {
  return std::count_if(numbers, numbers + count, [](int64_t number) { return number >= 0; });
}

// Whether there are rows: a tensor without data has no address.
bool Exist(const cuda::Rows& rows) { return rows.stride > 0; }

void CountEmbed(const KernelCall& call, StepCount& count) {
  const auto embed = ArgumentsOf<cuda::EmbedRows>(call);
  count.bytes.rows += embed.count * embed.width * (2 * kFloatBytes + (Exist(embed.copy) ? kCopyBytes : 0));
}

void CountNorm(const KernelCall& call, StepCount& count) {
  const auto norm = ArgumentsOf<cuda::NormRows>(call);
  const int64_t addend = Exist(norm.addend) ? cuda::ElementBytes(norm.addend_type) : 0;
  count.bytes.rows += norm.count * norm.width * (2 * kFloatBytes + addend + (Exist(norm.copy) ? kCopyBytes : 0));
}

void CountActivate(const KernelCall& call, StepCount& count) {
  const auto activate = ArgumentsOf<cuda::ActivateRows>(call);
  count.bytes.rows += 2 * activate.count * activate.width * cuda::ElementBytes(activate.row);
}

void CountGather(const KernelCall& call, StepCount& count) {
  const auto gather = ArgumentsOf<cuda::GatherRows>(call);
  const int64_t element_bytes = kFloatBytes + 2 * cuda::ElementBytes(gather.row);
  count.bytes.rows += CountOf(gather.indices, gather.count) * gather.width * element_bytes;
}

// The matrix is loaded once for 16 rows, and the rows by all thread blocks, of which the L2 cache serves all but one.
void CountMultiplyRows(const KernelCall& call, StepCount& count) {
  const auto product = ArgumentsOf<cuda::RowProducts>(call);
  const int64_t factor = Exist(product.rows) ? kCopyBytes : kFloatBytes;
  const int64_t outputs = cuda::ElementBytes(product.result) + (Exist(product.addend) ? kFloatBytes : 0);
  count.bytes.weights += int64_t{product.outputs} * product.width * kCopyBytes;
  count.bytes.product_rows += product.count * (product.width * factor + product.outputs * outputs);
  if (Exist(product.inputs)) count.bytes.product_rows += product.count * product.width * kFloatBytes;
  count.work.product_flops += 2.0 * static_cast<double>(product.count) * product.outputs * product.width;
}

// A row of an open chunk page, which is float32, and the same row of products.
struct ChunkRowBytes {
  explicit ChunkRowBytes(const cuda::ChunkRows& rows) {
    const int64_t width = int64_t{rows.heads} * rows.head_width, columns = int64_t{rows.heads} * rows.chunk_rank;
    kept = (3 * width + columns) * kFloatBytes;
    here = width * kFloatBytes + (2 * width + columns) * cuda::ElementBytes(rows.row);
  }

  int64_t kept = 0, here = 0;
};

void CountWrite(const KernelCall& call, StepCount& count) {
  const auto write = ArgumentsOf<cuda::WriteRows>(call);
  const int64_t width = int64_t{write.heads} * write.head_width;
  const int64_t padded_width = write.heads * cuda::PaddedHeadWidth(write.head_width);
  for (const cuda::NewKeys* const keys : {&write.window, &write.memory, &write.segment}) {
    const int64_t rows = CountOf(keys->slots, keys->count);
    count.bytes.rows += rows * 2 * width * cuda::ElementBytes(keys->row);
    count.bytes.cache += rows * 2 * padded_width * cuda::ElementBytes(write.element);
  }
  const int64_t kept = CountOf(write.kept.indices, write.kept.count);
  const ChunkRowBytes row(write.kept.rows);
  count.bytes.rows += kept * row.here;
  count.bytes.cache += kept * row.kept;
}

void CountMix(const KernelCall& call, StepCount& count) {
  const auto mix = ArgumentsOf<cuda::MixChunks>(call);
  const int64_t width = int64_t{mix.rows.heads} * mix.rows.head_width;
  const ChunkRowBytes row(mix.rows);
  for (int64_t chunk = 0; chunk < mix.count; ++chunk) {
    if (mix.chunk_ends[chunk] < 0) continue;
    count.bytes.cache += mix.chunk_kept[chunk] * row.kept;
    count.bytes.rows += (mix.rows.chunk_size - mix.chunk_kept[chunk]) * row.here;
    count.bytes.rows += mix.rows.chunk_rank * width * (cuda::ElementBytes(mix.rows.row) + 2 * kFloatBytes);
  }
}

// --- attention ---

// Sizes in bytes.
struct AttentionBytes {
  explicit AttentionBytes(const cuda::CausalAttention& attention)
      : key(cuda::PaddedHeadWidth(attention.head_width) * cuda::ElementBytes(attention.element)),
        query(attention.head_width * cuda::ElementBytes(attention.row)),
        partial_result((cuda::PaddedHeadWidth(attention.head_width) + 2) * kFloatBytes) {}

  const int64_t key, query, partial_result;  // of one head
};

cuda::SeenKeys KeysOf(const cuda::CausalAttention& attention, int64_t row, int64_t rows = 1) {
  const int64_t position = attention.positions[row];
  return cuda::KeysSeenFrom(attention, attention.segment_starts[row], position, position + rows - 1);
}

int64_t CountOf(const cuda::SeenKeys& seen) {
  return seen.segment_end - seen.memory_begin + seen.window_end - seen.window_begin;
}

// A thread block loads 64 keys, the values that are seen, and the distances of 64 keys.
void CountAttendToBlocks(const KernelCall& call, StepCount& count) {
  const auto decode = ArgumentsOf<cuda::DecodeAttention>(call);
  const cuda::CausalAttention& attention = decode.attention;
  const AttentionBytes bytes(attention);
  for (int i = 0; i < decode.row_count; ++i) {
    if (decode.rows[i] < 0) continue;
    const cuda::SeenKeys seen = KeysOf(attention, decode.rows[i]);
    const int64_t blocks = int64_t{attention.heads} * cuda::BlockCount(seen), keys = attention.heads * CountOf(seen);
    count.work.single_blocks += blocks;
    count.bytes.seen_cache += 2 * keys * bytes.key;
    count.bytes.cache += (blocks * cuda::kPageRows + keys) * bytes.key;
    count.bytes.distances += blocks * cuda::kPageRows * bytes.key;
    count.bytes.rows += blocks * bytes.query;
    count.bytes.partial += blocks * bytes.partial_result;
  }
}

void CountMergeBlocks(const KernelCall& call, StepCount& count) {
  const auto decode = ArgumentsOf<cuda::DecodeAttention>(call);
  const cuda::CausalAttention& attention = decode.attention;
  const AttentionBytes bytes(attention);
  for (int i = 0; i < decode.row_count; ++i) {
    if (decode.rows[i] < 0) continue;
    const int64_t blocks = int64_t{attention.heads} * cuda::BlockCount(KeysOf(attention, decode.rows[i]));
    count.bytes.partial += blocks * bytes.partial_result;
    count.bytes.rows += attention.heads * bytes.query;
  }
}

// A thread block loads the keys and values that are seen. Each of its warps loads the distances of vectors once, and of
// the window a band that is as many distances wider as the warp has rows.
void CountAttendFromTiles(const KernelCall& call, StepCount& count) {
  constexpr int64_t kWarpRows = 16;
  const auto prompt = ArgumentsOf<cuda::PromptAttention>(call);
  const cuda::CausalAttention& attention = prompt.attention;
  const AttentionBytes bytes(attention);
  const int64_t heads = attention.heads;
  for (int tile = 0; tile < prompt.tile_count; ++tile) {
    const int64_t rows = prompt.tiles[2 * tile + 1];
    if (rows == 0) continue;
    const cuda::SeenKeys seen = KeysOf(attention, prompt.tiles[2 * tile], rows);
    const int64_t window = cuda::BlocksOf(seen.window_begin, seen.window_end).count;
    const int64_t vectors = cuda::BlockCount(seen) - window, warps = (rows + kWarpRows - 1) / kWarpRows;
    count.work.tile_window_blocks += heads * window;
    count.work.tile_vector_blocks += heads * vectors;
    const int64_t loaded = heads * 2 * CountOf(seen) * bytes.key;
    count.bytes.seen_cache += loaded;
    count.bytes.cache += loaded;
    const int64_t distances = window * (cuda::kPageRows + kWarpRows) + vectors * cuda::kPageRows;
    count.bytes.distances += heads * warps * distances * bytes.key;
    count.bytes.rows += heads * 2 * rows * bytes.query;
  }
}

// --- LibTorch ---

void CountOperator(const Node& node, StepCount& count) {
  const bool is_product = node.name == "mm";  // of rows [m, k] and weights [k, n]
  int64_t& rows = is_product ? count.bytes.product_rows : count.bytes.rows;
  rows += node.written_bytes;
  double elements = static_cast<double>(node.written_bytes) / kCopyBytes;
  for (size_t i = 0; i < node.read_bytes.size(); ++i) {
    (is_product && i == 1 ? count.bytes.weights : rows) += node.read_bytes[i];
    elements *= static_cast<double>(node.read_bytes[i]) / kCopyBytes;
  }
  // The product of mk, kn and mn elements is (mkn)^2.
  if (is_product) count.work.product_flops += 2 * std::sqrt(elements);
}

}  // namespace

StepCount CountStep(const Nodes& step) {
  using Count = void (*)(const KernelCall& call, StepCount& count);
  static const std::map<std::string, Count> kKernels = {{"Activate", CountActivate},
                                                        {"AttendFromTiles", CountAttendFromTiles},
                                                        {"AttendInOneStage", CountAttendFromTiles},
                                                        {"AttendToBlocks", CountAttendToBlocks},
                                                        {"Embed", CountEmbed},
                                                        {"Gather", CountGather},
                                                        {"MergeBlocks", CountMergeBlocks},
                                                        {"Mix", CountMix},
                                                        {"MultiplyRows", CountMultiplyRows},
                                                        {"Norm", CountNorm},
                                                        {"Write", CountWrite}};
  StepCount count;
  for (const Node& node : step) {
    if (node.kernel) {
      kKernels.at(node.name)(*node.kernel, count);
    } else if (node.is_copy()) {
      (node.name == "upload" ? count.bytes.upload : count.bytes.download) += node.written_bytes;
    } else {
      CountOperator(node, count);
    }
  }
  return count;
}

}  // namespace longshort::models
