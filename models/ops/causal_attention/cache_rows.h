// Compresses chunks, and writes rows to cache pages. StepPlan's arrays give each row's slot, its place on a page:
// page * (rows of a page) + row. Pointers are device pointers. A row's bits do not depend on the other rows.
//
// Rows are products of the layer's input with weights, without biases. Only pages of keys and values need a bias: it
// passes unchanged through a chunk's weighted sums, whose weights have the sum 1, and it does not change the weights,
// which are a softmax over rows with the same bias.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// The stored data of a row whose chunk is not yet full: x, and the products for key, value, and logits of the dynamic
// projection; float32.
//   open chunk page  [layers][C][OpenRowFloats]
constexpr int64_t OpenRowFloats(int64_t width, int64_t logit_columns) {
  return (3 * width + logit_columns + 3) / 4 * 4;
}

// A layer's results for the rows of a step.
struct ChunkRows {
  ElementType row;   // of products
  Rows inputs;       // [rows, d], float32
  Rows keys_values;  // [rows, 2, d]
  Rows logits;       // [rows, H*R]
  int heads, head_width, chunk_size, chunk_rank;
  float* open_chunks;   // the layer's part of page 0
  int64_t page_floats;  // from one page to the next
};

// The dynamic projection of chunks that become full (equation 3 of the paper): for head h and rank t, the weights of a
// chunk's C rows are the softmax over them of logits[h * R + t], and each head's slice of the channels is mixed by
// them. Both forms use the results. A segment's vectors are DualLN of the mixed keys and values ("project, then mix").
// The memory's vectors are DualLN of the keys' and values' maps of the mixed inputs ("mix, then project"). REQUIRES:
// WriteRows of this step has not run. A chunk's bits depend on its rows only, not on how they were split into steps.
struct MixChunks {
  ChunkRows rows;
  const int64_t* chunk_ends;   // [count]: the step's row of its last token; < 0: none
  const int64_t* chunk_kept;   // [count]: number of its first rows that are on an open chunk page
  const int64_t* chunk_pages;  // [count]: that page
  int64_t count;
  Rows mixed_inputs;       // [count * R, d], of the products' type
  Rows mixed_keys_values;  // [count * R, 2, d], float32
};
KernelCall MixChunksCall(const MixChunks& arguments);

// Rows that become keys and values on window or segment pages (pages.h): DualLN(keys_values + biases).
struct NewKeys {
  ElementType row;
  Rows keys_values;      // [count, 2, d]: key, then value. stride 0: all rows are the same
  const float* biases;   // [2, d]; null: none
  NormWeights norm;      // of the DualLN, which key and value share
  const int64_t* slots;  // [count]; < 0: not written
  int64_t count;
  void* pages;  // the layer's part of page 0
};

// Rows whose chunk is not full after the step, for their open chunk page.
struct KeptRows {
  ChunkRows rows;
  const int64_t* indices;  // [count]: which rows; < 0: not stored
  const int64_t* slots;    // [count]
  int64_t count;
};

// All that a layer writes in a step. Parts with count 0 are empty.
struct WriteRows {
  ElementType element;  // of window and segment pages
  int heads, head_width;
  float epsilon;
  int64_t page_elements;  // from one page to the next
  NewKeys window, memory, segment;
  KeptRows kept;
};
KernelCall WriteRowsCall(const WriteRows& arguments);

}  // namespace longshort::models::cuda
