// Attention of single rows: one thread block per row, head and 64 keys, and a kernel that merges their results.
//
// A block has four warps. For the scores, each warp has 16 keys, and loads their fragments directly from global memory.
// For the mixed values, each warp has a share of the channels, and the values go through shared memory. Only row 0 of
// the 16 rows of the tensor cores' operands is used: the kernel is memory-bound.
//   shared  values [64][width], swizzled; probabilities [64] float32; the warps' largest scores [4]

#include "models/gpu/attention_tile.h"
#include "models/gpu/kernel_choice.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;

template <typename Element, int width>
constexpr int SharedBytes() {
  return Tile<Element, width>::kBlockBytes + kPageRows * 4 + kThreads / kWarpThreads * 4;
}

// A lane's pieces of a query.
template <typename Element, int width>
struct QueryPieces {
  Words<4> pieces[Tile<Element, width>::kPiecesOfLane];
};
// Row 0 of the operand is the query (lanes 0 to 3), the others are zeros.
template <typename Element, int width>
LS_DEVICE QueryPieces<Element, width> LoadQuery(const CausalAttention& attention, int64_t row, int head,
                                                const float* bias) {
  using Shape = Tile<Element, width>;
  QueryPieces<Element, width> query;
  LS_UNROLL
  for (int c = 0; c < Shape::kPiecesOfLane; ++c) {
    LS_UNROLL
    for (int i = 0; i < 4; ++i) {
      uint32_t& word = query.pieces[c].word[i];
      word = 0;
      if (Lane() >= 4) continue;
      const int channel = (4 * c + Lane()) * Shape::kElementsOfPiece + i * Shape::kElementsOfPiece / 4;
      const float first = QueryElement(attention, row, head, channel, bias);
      if constexpr (sizeof(Element) == 2) {
        word = PackBFloat16(first, QueryElement(attention, row, head, channel + 1, bias));
      } else {
        word = BitsOf(first);
      }
    }
  }
  return query;
}

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
  auto* const probabilities = reinterpret_cast<float*>(values + Shape::kBlockBytes);
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
    const auto query = LoadQuery<Element, width>(attention, row, head, ContentBias(attention, block.part));
    const auto distance_query = LoadQuery<Element, width>(attention, row, head, DistanceBias(attention, block.part));
    const Words<4> nothing = {};
    const unsigned char *key_rows[2], *distance_rows[2];
    LS_UNROLL
    for (int n = 0; n < 2; ++n) {
      const int key = Warp() * 16 + n * 8 + group;
      key_rows[n] = keys + key * Shape::kRowBytes + quad * 16;
      distance_rows[n] = DistanceRow<Element, width>(distances, newest - key) + quad * 16;
    }
    // As many loads in flight as the registers allow.
    constexpr int kAhead = Shape::kPiecesOfLane < 2 ? 1 : 2;
    LS_UNROLL
    for (int first = 0; first < Shape::kPiecesOfLane; first += kAhead) {
      Words<4> key_pieces[kAhead][2], distance_pieces[kAhead][2];
      LS_UNROLL
      for (int i = 0; i < 2 * kAhead; ++i) {
        key_pieces[i / 2][i % 2] = LoadConstant<4>(key_rows[i % 2] + (first + i / 2) * 64);
        distance_pieces[i / 2][i % 2] = LoadConstant<4>(distance_rows[i % 2] + (first + i / 2) * 64);
      }
      LS_UNROLL
      for (int i = 0; i < 2 * kAhead; ++i) {
        MultiplyPiece<Element>(content[i % 2], query.pieces[first + i / 2], nothing, key_pieces[i / 2][i % 2]);
        MultiplyPiece<Element>(relative[i % 2], distance_query.pieces[first + i / 2], nothing,
                               distance_pieces[i / 2][i % 2]);
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

constexpr int kMergeThreads = 32;

// A warp merges the blocks of one row and head, left to right. Each lane has some channels.
template <int width>
LS_KERNEL(kMergeThreads)
void MergeBlocks(LS_ARGUMENTS DecodeAttention arguments) {
  constexpr int kChannels = width / kWarpThreads;
  const CausalAttention& attention = arguments.attention;
  const int entry = Block().x, head = Block().y;
  const int64_t row = arguments.rows[entry];
  if (row < 0) return;
  const int64_t position = attention.positions[row];
  const int blocks = BlockCount(KeysSeenFrom(attention, attention.segment_starts[row], position, position));
  const int64_t first = (int64_t{entry} * attention.heads + head) * arguments.max_blocks;
  const float* const outputs = arguments.partial_outputs + first * width + Lane() * kChannels;
  const float* const sums = arguments.partial_sums + 2 * first;

  float merged[kChannels] = {}, largest = kMinusInfinity, sum = 0;
  MergeParts<width>(merged, largest, sum, blocks, outputs, sums);
  const float scale = Reciprocal(sum);
  LS_UNROLL
  for (int c = 0; c < kChannels; ++c) {
    const int channel = Lane() * kChannels + c;
    if (channel >= attention.head_width) continue;
    SetRowElement(attention.row, attention.output,
                  row * attention.output_stride + head * attention.head_width + channel, Multiply(merged[c], scale));
  }
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
  shape.threads = kMergeThreads;
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
