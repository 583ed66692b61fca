// Attention of single rows: one thread block per row, head and 64 keys, and a kernel that merges their results.
//
// AttendToBlocks: a block has four warps. For the scores, each warp has 16 keys, and loads their fragments directly
// from global memory. For the mixed values, each warp has a share of the channels, and the values go through shared
// memory. Only row 0 of the 16 rows of the tensor cores' operands is used: the kernel is memory-bound.
//   shared  values [64][width], swizzled; the query with each bias [2][width]; probabilities [64] float32; the warps'
//           largest scores [4]

#include "models/ops/causal_attention/attention_tile.h"
#include "models/ops/rows/kernel_choice.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;

template <typename Element, int width>
constexpr int SharedBytes() {
  return Tile<Element, width>::kBlockBytes + 2 * Tile<Element, width>::kRowBytes + kPageRows * 4 +
         kThreads / kWarpThreads * 4;
}

// Writes the query with its two biases, [2][width] of Element: for keys, and for position terms. Each thread has a
// channel. A lane that loaded its whole operand would wait for global memory once for each channel.
template <typename Element, int width>
LS_DEVICE void StageQueries(Element* queries, const CausalAttention& attention, int64_t row, int head, Part part) {
  for (int i = Thread(); i < 2 * width; i += kThreads) {
    const float* const bias = i < width ? ContentBias(attention, part) : DistanceBias(attention, part);
    Convert(QueryElement(attention, row, head, i % width, bias), queries[i]);
  }
}
// Row 0 of the operand is the query (lanes 0 to 3), the others are zeros.
LS_DEVICE Words<4> PieceOfQuery(const void* query, int first) {
  const Words<4> nothing = {};
  return Lane() < 4 ? Load<4>(static_cast<const unsigned char*>(query) + (first * 4 + Lane()) * 16) : nothing;
}

// Pieces of keys and of their position terms, loaded before they are used: as many as registers allow.
template <typename Element, int width>
struct LoadedPieces {
  static constexpr int kCount = Tile<Element, width>::kPiecesOfLane < 2 ? 1 : 2;
  Words<4> keys[kCount][2], distances[kCount][2];

  LS_DEVICE void Load(const unsigned char* const (&key_rows)[2], const unsigned char* const (&distance_rows)[2],
                      int first) {
    LS_UNROLL
    for (int i = 0; i < 2 * kCount; ++i) {
      keys[i / 2][i % 2] = LoadConstant<4>(key_rows[i % 2] + (first + i / 2) * 64);
      distances[i / 2][i % 2] = LoadConstant<4>(distance_rows[i % 2] + (first + i / 2) * 64);
    }
  }
};

template <typename Element, int width>
LS_KERNEL(kThreads)
void AttendToBlocks(LS_ARGUMENTS DecodeAttention arguments) {
  using Shape = Tile<Element, width>;
  const CausalAttention& attention = arguments.attention;
  const int entry = Block().z, head = Block().y, index = Block().x;
  const int64_t row = arguments.rows[entry];
  if (row < 0) return;
  const int64_t position = attention.positions[row], slice = attention.row_slices[row];
  const SeenKeys seen = KeysSeenFrom(attention, attention.segment_starts[row], position, position);
  if (index >= BlockCount(seen)) return;
  const KeyBlock block = BlockNumber(seen, index);
  const unsigned char* const keys =
      KeysOfBlock<Element, width>(attention, PageIdsOf(attention, seen, slice), block, head);

  unsigned char* const values = SharedMemory();
  auto* const queries = reinterpret_cast<Element*>(values + Shape::kBlockBytes);
  auto* const probabilities = reinterpret_cast<float*>(queries + 2 * width);
  float* const largest_of_warps = probabilities + kPageRows;
  for (int i = Thread(); i < kPageRows * Shape::kPiecesOfRow; i += kThreads) {
    const int key = i / Shape::kPiecesOfRow, piece = i % Shape::kPiecesOfRow;
    CopyAsync(values + PieceOffset<Shape::kPiecesOfRow>(key, piece), keys + Shape::kBlockBytes + i * 16,
              block.IsSeen(key));
  }
  CommitCopies();

  // Scores of 16 keys: content, and position terms.
  const int group = Lane() / 4, quad = Lane() % 4;
  float content[2][4] = {}, relative[2][4] = {};
  {
    const Distances distances = DistancesOf<Element, width>(attention, block.part, head);
    const int newest = NewestKeysOf(attention, seen, position).Of(block.part) - block.first;
    const unsigned char *key_rows[2], *distance_rows[2];
    LS_UNROLL
    for (int n = 0; n < 2; ++n) {
      const int key = Warp() * 16 + n * 8 + group;
      key_rows[n] = keys + key * Shape::kRowBytes + quad * 16;
      distance_rows[n] = DistanceRow<Element, width>(distances, newest - key) + quad * 16;
    }
    LoadedPieces<Element, width> pieces;
    pieces.Load(key_rows, distance_rows, 0);
    StageQueries<Element, width>(queries, attention, row, head, block.part);
    SyncBlock();
    const Words<4> nothing = {};
    LS_UNROLL
    for (int first = 0; first < Shape::kPiecesOfLane; first += pieces.kCount) {
      if (first > 0) pieces.Load(key_rows, distance_rows, first);
      LS_UNROLL
      for (int i = 0; i < pieces.kCount; ++i) {
        const Words<4> query = PieceOfQuery(queries, first + i);
        const Words<4> distance_query = PieceOfQuery(queries + width, first + i);
        LS_UNROLL
        for (int n = 0; n < 2; ++n) {
          MultiplyPiece<Element>(content[n], query, nothing, pieces.keys[i][n]);
          MultiplyPiece<Element>(relative[n], distance_query, nothing, pieces.distances[i][n]);
        }
      }
    }
  }

  // Softmax over the block's keys.
  float scores[2][2], largest = kMinusInfinity;
  LS_UNROLL
  for (int n = 0; n < 2; ++n) {
    LS_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int key = Warp() * 16 + n * 8 + quad * 2 + i;
      const bool is_seen = group == 0 && block.IsSeen(key);
      scores[n][i] = is_seen ? Multiply(Add(content[n][i], relative[n][i]), kLog2E) : kMinusInfinity;
      largest = Larger(largest, scores[n][i]);
    }
  }
  largest = Larger(largest, ShuffleXor(largest, 1));
  largest = Larger(largest, ShuffleXor(largest, 2));
  if (Lane() == 0) largest_of_warps[Warp()] = largest;
  SyncBlock();
  largest = Larger(Larger(largest_of_warps[0], largest_of_warps[1]), Larger(largest_of_warps[2], largest_of_warps[3]));
  if (group == 0) {
    LS_UNROLL
    for (int n = 0; n < 2; ++n) {
      LS_UNROLL
      for (int i = 0; i < 2; ++i) {
        probabilities[Warp() * 16 + n * 8 + quad * 2 + i] = Probability(scores[n][i], largest);
      }
    }
  }
  WaitForCopies<0>();
  SyncBlock();

  // Mixed values.
  const int64_t place = (int64_t{entry} * attention.heads + head) * arguments.max_blocks + index;
  float sums[4] = {};
  for (int pair = Warp(); pair < width / 16; pair += kThreads / kWarpThreads) {
    float mixed[2][4] = {};
    sums[0] = sums[1] = sums[2] = sums[3] = 0;
    LS_UNROLL
    for (int step = 0; step < kPageRows / Shape::kKeysOfProduct; ++step) {
      const float* const p = probabilities + step * Shape::kKeysOfProduct + quad * 2;
      const bool is_row = group == 0;
      const float here[4] = {is_row ? p[0] : 0.0f, is_row ? p[1] : 0.0f, 0.0f, 0.0f};
      const float next[4] = {is_row && sizeof(Element) == 2 ? p[8] : 0.0f, is_row && sizeof(Element) == 2 ? p[9] : 0.0f,
                             0.0f, 0.0f};
      uint32_t a[4];
      ProbabilityOperand<Element>(a, here, next);
      AddSums<Element>(sums, a);
      MixValues<Element, width>(mixed, a, values, step, pair);
    }
    if (group != 0) continue;
    LS_UNROLL
    for (int n = 0; n < 2; ++n) {
      const Words<2> channels = {{BitsOf(mixed[n][0]), BitsOf(mixed[n][1])}};
      Store<2>(arguments.partial_outputs + place * width + pair * 16 + n * 8 + quad * 2, channels);
    }
  }
  if (Thread() == 0) {
    arguments.partial_sums[2 * place] = largest;
    arguments.partial_sums[2 * place + 1] = sums[0];
  }
}

// Results of blocks that are in shared memory at once.
constexpr int kMergedBlocks = 64;

// A thread block merges the blocks of one row and head, left to right. A thread has a channel. Results are copied to
// shared memory together, because loads one after the other would take longer than the arithmetic.
//   shared  [kMergedBlocks][width] float32, outputs; [kMergedBlocks][2] float32, largest scores and sums
template <int width>
LS_KERNEL(kThreads)
void MergeBlocks(LS_ARGUMENTS DecodeAttention arguments) {
  const CausalAttention& attention = arguments.attention;
  const int entry = Block().x, head = Block().y;
  const int64_t row = arguments.rows[entry];
  if (row < 0) return;
  const int64_t position = attention.positions[row];
  const int blocks = BlockCount(KeysSeenFrom(attention, attention.segment_starts[row], position, position));
  const int64_t place = (int64_t{entry} * attention.heads + head) * arguments.max_blocks;
  float* const outputs = reinterpret_cast<float*>(SharedMemory());
  float* const sums = outputs + kMergedBlocks * width;

  float merged[1] = {}, largest = kMinusInfinity, sum = 0;
  for (int first = 0; first < blocks; first += kMergedBlocks) {
    const int count = blocks - first < kMergedBlocks ? blocks - first : kMergedBlocks;
    for (int i = Thread() * 4; i < count * width; i += kThreads * 4) {
      CopyAsync(outputs + i, arguments.partial_outputs + (place + first) * width + i, true);
    }
    CommitCopies();
    for (int i = Thread(); i < 2 * count; i += kThreads) sums[i] = arguments.partial_sums[2 * (place + first) + i];
    WaitForCopies<0>();
    SyncBlock();
    if (Thread() < width) MergeParts<width>(merged, largest, sum, count, outputs + Thread(), sums);
    SyncBlock();  // before the next results overwrite these
  }
  const int channel = Thread();
  if (channel >= attention.head_width) return;
  SetRowElement(attention.row, attention.output, row * attention.output_stride + head * attention.head_width + channel,
                Multiply(merged[0], Reciprocal(sum)));
}

template <typename Element, int width>
KernelCall AttendToBlocksOfWidth(const DecodeAttention& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.max_blocks);
  shape.grid.y = static_cast<unsigned>(arguments.attention.heads);
  shape.grid.z = static_cast<unsigned>(arguments.row_count);
  shape.threads = kThreads;
  shape.shared_bytes = SharedBytes<Element, width>();
  return MakeCall<AttendToBlocks<Element, width>>("AttendToBlocks", shape, arguments);
}
template <int width>
KernelCall MergeBlocksOfWidth(const DecodeAttention& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.row_count);
  shape.grid.y = static_cast<unsigned>(arguments.attention.heads);
  shape.threads = kThreads;
  shape.shared_bytes = sizeof(float) * kMergedBlocks * (width + 2);
  return MakeCall<MergeBlocks<width>>("MergeBlocks", shape, arguments);
}

}  // namespace

KernelCall AttendToBlocksCall(const DecodeAttention& arguments) {
  return ForTypeAndWidth(arguments.attention.element, arguments.attention.head_width, [&](auto element, auto width) {
    return AttendToBlocksOfWidth<decltype(element), decltype(width)::value>(arguments);
  });
}

KernelCall MergeBlocksCall(const DecodeAttention& arguments) {
  return ForWidth(arguments.attention.head_width,
                  [&](auto width) { return MergeBlocksOfWidth<decltype(width)::value>(arguments); });
}

}  // namespace longshort::models::cuda
