// The kernels of causal long-short attention over cache pages: one softmax over a window of keys and compressed vectors
// of chunks. They equal the reference op (causal_attention.h) up to rounding.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/cpu_kernels.h"

// For CPUs: consecutive queries and some heads.
//
// Keys are folded in blocks of 64 on the absolute grid, left to right (memory, segment, window). So the bits of a
// query's result depend on its history only, not on the other queries of the run. The op allocates no memory, and reads
// the keys once per four queries.
namespace longshort::models::cpu {

// Keys in a block.
inline constexpr int64_t kBlock = 64;
// Keys in a page; a block spans 4 pages. Smaller pages waste less at both ends of a stream. 16 is the width of an
// AVX-512 vector.
inline constexpr int64_t kPageRows = 16;
// Queries that share one pass over the keys.
inline constexpr int64_t kQueriesPerTile = 4;

// Whether two channels share 32 bits, as bfloat16 numbers do. A shift then widens the first channel to float32, and a
// mask the second. That is half the work of widening them separately. The functions below return an element's place.
template <typename Element>
inline constexpr bool kChannelsInPairs = sizeof(Element) < sizeof(float);

// A head's keys are padded with a channel of zeros if the width is odd.
constexpr int64_t EvenHeadWidth(int64_t head_width) { return head_width + head_width % 2; }

template <typename Element>
constexpr int64_t KeyPlace(int64_t channel, int64_t row) {
  if (!kChannelsInPairs<Element>) return channel * kPageRows + row;
  const int64_t second = channel & 1;
  return (channel - second) * kPageRows + row * 2 + second;
}

// In a group of 32 channels, channel c is next to channel c + 16. A remaining group of 16 channels is not paired.
template <typename Element>
constexpr int64_t ValuePlace(int64_t padded_width, int64_t row, int64_t channel) {
  const int64_t in_group = channel & (2 * kLanes - 1), group = channel - in_group;
  if (!kChannelsInPairs<Element> || group + 2 * kLanes > padded_width) return row * padded_width + channel;
  const int64_t second = in_group >= kLanes ? 1 : 0;
  return row * padded_width + group + (in_group - second * kLanes) * 2 + second;
}

// `stride` as in DistanceTable.
template <typename Element>
constexpr int64_t DistancePlace(int64_t stride, int64_t channel, int64_t column) {
  if (!kChannelsInPairs<Element>) return channel * stride + column;
  const int64_t second = channel & 1;
  return (channel - second) * stride + column * 2 + second;
}

// Consecutive pages of keys on the absolute grid: page `first + i` is page ids[i], or the zero page if ids[i] is
// negative. Within a page, for each head:
//   keys    [EvenHeadWidth][kPageRows]     channel-major, so that the keys of a page are adjacent (KeyPlace)
//   values  [kPageRows][PaddedHeadWidth]   (ValuePlace)
template <typename Element>
struct KeyPages {
  int64_t first = 0;
  int64_t count = 0;
  const int64_t* ids = nullptr;        // [count]
  const Element* pages = nullptr;      // the layer's part of page 0
  const Element* zero_page = nullptr;  // the layer's part of the zero page
  int64_t page_elements = 0;           // from one page to the next
  int64_t key_offset = 0;              // of the first head, within the layer's part
  int64_t value_offset = 0;
  int64_t head_elements = 0;  // from one head to the next
};

// Position terms, largest distance first, padded with a block of zeros on both sides so that 64 of them can be read at
// any block of keys.
//   table  [heads][EvenHeadWidth][kBlock + count + kBlock]: column kBlock + count-1-n holds distance n (DistancePlace)
template <typename Element>
struct DistanceTable {
  const Element* table = nullptr;
  int64_t count = 0;

  int64_t stride() const { return count + 2 * kBlock; }
};

template <typename Element>
struct AttentionRun {
  // Shape of the model.
  int64_t head_width = 0;
  int64_t window_length = 0;
  int64_t chunk_size = 0;
  int64_t chunk_rank = 0;

  // Number of adjacent heads, here and below: at least one.
  int64_t heads = 1;
  // Queries of these heads, scaled by 1/sqrt(head_width). Row i, at stream position `position + i`, begins at queries +
  // i * stride.
  const float* queries = nullptr;
  float* output = nullptr;  // [count] rows of heads * head_width floats, with the same stride
  int64_t stride = 0;
  int64_t count = 0;
  int64_t position = 0;
  const float* window_bias = nullptr;    // [heads][head_width], added to queries that meet window keys
  const float* relative_bias = nullptr;  // [heads][head_width], added to queries that meet window positions

  // Compressed vectors first_vector .. segment_vector-1 are read from `memory`; those from segment_vector to the
  // query's own chunk are read from `segment`. All queries of a run lie in one segment.
  int64_t first_vector = 0;
  int64_t segment_vector = 0;
  KeyPages<Element> memory;
  KeyPages<Element> segment;
  KeyPages<Element> window;
  DistanceTable<Element> chunk_distances;
  DistanceTable<Element> window_distances;

  // [AttentionScratchFloats(head_width, heads)], used during this call only.
  float* scratch = nullptr;
};

constexpr int64_t AttentionScratchFloats(int64_t head_width, int64_t heads) {
  return heads * kQueriesPerTile * (2 * EvenHeadWidth(head_width) + PaddedHeadWidth(head_width) + 2);
}

// Element is float or BFloat16. REQUIRES: the processor supports `set`.
template <typename Element>
void Attend(const AttentionRun<Element>& run, InstructionSet set = BestInstructionSet());

// --- the queries of prompts by the processor's matrix tiles (AMX) ---
//
// Queries and probabilities are rounded to bfloat16; their products are summed in float32. Queries form groups of 16 on
// the absolute grid of positions, and so do the keys that are folded together. So a query's result has the same bits
// whatever the other queries of the run are.

// Rows of a tile.
inline constexpr int64_t kTileRows = 16;
// The most columns by which the distances of queries of a group may differ.
inline constexpr int64_t kTileSpread = 64;
// From so many queries on, a group is faster than single queries.
inline constexpr int64_t kQueriesForTiles = 4;

// Whether AttendByTiles can compute this shape.
constexpr bool FitsTiles(int64_t head_width, int64_t chunk_size, int64_t chunk_rank) {
  return head_width % (2 * kTileRows) == 0 && ((kTileRows - 2) / chunk_size + 1) * chunk_rank <= kTileSpread;
}

// Floats of AttentionRun::scratch.
int64_t TileScratchFloats(int64_t head_width);

// REQUIRES: FitsTiles; the processor has tiles for bfloat16, and the system permits their use; the run's positions lie
// in one block of 64 on the absolute grid.
void AttendByTiles(const AttentionRun<BFloat16>& run);

}  // namespace longshort::models::cpu

// For GPUs: the rows of any step. Two kernels give bit-identical results:
//   DecodeAttention   one thread block per row, head and 64 keys, then a second kernel that merges them in order:
//                     for steps with few rows of each sequence
//   PromptAttention   one thread block per head and tile of up to 64 rows of one sequence: for pieces of prompts
//
// Keys are folded in blocks of 64 on the absolute grid, left to right: memory, segment, window. Each block has its own
// softmax, with largest score m_b, sum l_b and output o_b, which is merged into the running one:
//   m' = max(m, m_b);  l' = l e^(m - m') + l_b e^(m_b - m');  o' likewise;  the output is o / l
// So a row's bits depend on its history only, not on the other rows or on the choice of kernel.
namespace longshort::models::cuda {

// Inputs and output of attention. Pointers are device pointers.
struct CausalAttention {
  ElementType element;  // of pages and distances; products are of this type, with sums in float32
  ElementType row;      // of queries and output

  // The model.
  int heads;
  int head_width;  // at most kMaxHeadWidth
  int window_length;
  int chunk_size;
  int chunk_rank;
  int memory_vectors;  // M/C * R
  // [heads, head_width], added to scaled queries. They include the bias of the queries' map.
  const float* window_bias;    // for window keys: r_w_bias
  const float* relative_bias;  // for window positions: r_r_bias
  const float* query_bias;     // for vectors of chunks and their positions; null: none
  // Position terms by distance, padded as keys are: [heads, count, padded head width].
  const void* window_distances;  // count = window_length
  const void* chunk_distances;   // count = chunk_distance_count
  int chunk_distance_count;

  // The step: StepPlan's numbers of each row, [rows].
  const int64_t* positions;
  const int64_t* segment_starts;
  const int64_t* row_slices;
  KeyPages memory, segment, window;
  int64_t page_elements;  // from one page to the next

  // Rows, `..._stride` elements apart: [rows, heads * head_width].
  const void* queries;
  float query_scale;  // 1/sqrt(head_width)
  int64_t query_stride;
  void* output;
  int64_t output_stride;
};

// The maximum number of blocks of keys that a row can see.
constexpr int64_t MaxKeyBlocks(int64_t window_length, int64_t memory_vectors, int64_t segment_vectors) {
  // A range of n keys touches (n - 1 + 63) / 64 + 1 blocks at most.
  return (window_length + 62) / kPageRows + 1 + (memory_vectors + 62) / kPageRows + 1 +
         (segment_vectors + 62) / kPageRows + 1;
}

struct DecodeAttention {
  CausalAttention attention;
  const int64_t* rows;  // [row_count]: which rows; < 0: padding of a graph
  int row_count;
  int max_blocks;
  float* partial_outputs;  // [row_count, heads, max_blocks, padded head width], workspace
  float* partial_sums;     // [row_count, heads, max_blocks, 2]: m and l of each block, workspace
};

// Launch in this order: the first writes the partial results, the second the output rows.
KernelCall AttendToBlocksCall(const DecodeAttention& arguments);
KernelCall MergeBlocksCall(const DecodeAttention& arguments);

struct PromptAttention {
  CausalAttention attention;
  // [tile_count, 2]: first row and number of rows. A tile has at most kTileRows rows of consecutive positions in one
  // segment of one slice; 0 rows are padding.
  const int64_t* tiles;
  int tile_count;
};

// `max_shared_bytes`: of a thread block of the chip (GpuFacts). The bits do not depend on it.
KernelCall PromptAttentionCall(const PromptAttention& arguments, int64_t max_shared_bytes);

}  // namespace longshort::models::cuda
