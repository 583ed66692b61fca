// Causal long-short attention over cache pages: one softmax over a window of keys and compressed vectors of chunks, for
// the rows of any step. Equals the reference op (models/ops/causal_attention/causal_attention.h). Two kernels give
// bit-identical results:
//   DecodeAttention   one thread block per row, head and 64 keys, then a second kernel that merges them in order:
//                     for steps with few rows of each sequence
//   PromptAttention   one thread block per head and tile of up to 64 rows of one sequence: for pieces of prompts
//
// Keys are folded in blocks of 64 on the absolute grid, left to right: memory, segment, window. Each block has its own
// softmax, with largest score m_b, sum l_b and output o_b, which is merged into the running one:
//   m' = max(m, m_b);  l' = l e^(m - m') + l_b e^(m_b - m');  o' likewise;  the output is o / l
// So a row's bits depend on its history only, not on the other rows or on the choice of kernel.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"

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

KernelCall PromptAttentionCall(const PromptAttention& arguments);

}  // namespace longshort::models::cuda
