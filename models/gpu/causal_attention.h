// Causal long-short attention over cache pages: one softmax over a window of keys and compressed vectors of chunks, as
// the reference op (models/attention/causal_attention.h), for the rows of any step. Two ways with equal bits:
//   DecodeAttention   a block of the GPU for each row, head and 64 keys, and a second kernel that merges them in order:
//                     for steps with few rows of each sequence
//   PromptAttention   a block of the GPU for each tile of up to 64 rows of one sequence and head: for pieces of prompts
//
// Keys are folded in blocks of 64 on the absolute grid, left to right: memory, segment, window. Each block has a
// softmax of its own, with m its largest score and l its sum, and is merged into those before:
//   m' = max(m, m_b);  l' = l e^(m - m') + l_b e^(m_b - m');  o' likewise;  the output is o / l
// So a row's bits depend on its history only: neither on what is computed beside it, nor on which of the two ways.
#pragma once

#include <cstdint>

#include "models/gpu/kernel_call.h"
#include "models/gpu/pages.h"

namespace longshort::models::cuda {

// What attention reads and writes. Pointers are the device's.
struct CausalAttention {
  ElementType element;  // of pages and distances; products are of this type, with sums in float32
  ElementType row;      // of queries and output

  // The model.
  int heads;
  int head_width;  // at most kMaxHeadWidth
  int window_length;
  int chunk_size;
  int chunk_rank;
  int memory_vectors;          // M/C * R
  const float* window_bias;    // [heads, head_width]: r_w_bias, added to queries that meet window keys
  const float* relative_bias;  // [heads, head_width]: r_r_bias, added to queries that meet window positions
  // Position terms by distance, padded as keys are: [heads, count, padded head width].
  const void* window_distances;  // count = window_length
  const void* chunk_distances;   // count = chunk_distance_count
  int chunk_distance_count;

  // The step: a row's numbers as StepPlan has them, [rows] each.
  const int64_t* positions;
  const int64_t* segment_starts;
  const int64_t* row_slices;
  KeyPages memory, segment, window;
  int64_t page_elements;  // from one page to the next

  // Rows, `..._stride` elements apart: [rows, heads * head_width].
  const void* queries;  // scaled by 1/sqrt(head_width)
  int64_t query_stride;
  void* output;
  int64_t output_stride;
};

// Blocks of keys that a row can see, at the most.
constexpr int64_t MaxKeyBlocks(int64_t window_length, int64_t memory_vectors, int64_t segment_vectors) {
  // A range of n keys touches (n - 1 + 63) / 64 + 1 blocks at most.
  return (window_length + 62) / kPageRows + 1 + (memory_vectors + 62) / kPageRows + 1 +
         (segment_vectors + 62) / kPageRows + 1;
}

struct DecodeAttention {
  CausalAttention attention;
  const int64_t* rows;  // [row_count]: which rows; below 0: none, where a graph has room for more
  int row_count;
  int max_blocks;
  float* partial_outputs;  // [row_count, heads, max_blocks, padded head width], workspace
  float* partial_sums;     // [row_count, heads, max_blocks, 2]: m and l of each block, workspace
};

// To be launched one after the other. The first writes the partial results, the second the output rows.
KernelCall AttendToBlocksCall(const DecodeAttention& arguments);
KernelCall MergeBlocksCall(const DecodeAttention& arguments);

struct PromptAttention {
  CausalAttention attention;
  // [tile_count, 2]: first row and number of rows, at most kTileRows, of consecutive positions in one segment of one
  // slice; a tile of 0 rows is none.
  const int64_t* tiles;
  int tile_count;
};

KernelCall PromptAttentionCall(const PromptAttention& arguments);

}  // namespace longshort::models::cuda
