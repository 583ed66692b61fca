// Writes rows to cache pages. StepPlan's arrays give each row's slot, its place on a page: page * (rows of a page) +
// row. Pointers are device pointers. A row's bits do not depend on the other rows.
#pragma once

#include <cstdint>

#include "models/gpu/kernel_call.h"
#include "models/gpu/pages.h"
#include "models/gpu/rows.h"

namespace longshort::models::cuda {

// Writes keys and values of rows to window or segment pages (pages.h), with their DualLN.
struct AppendRows {
  ElementType row, element;
  Rows keys_values;      // [count, 2, heads * head_width]: key, then value. stride 0: all rows are the same
  const int64_t* slots;  // [count]; < 0: not written
  const float* gain;     // [heads * head_width] of the DualLN, which key and value share; null: already
  const float* bias;     // normalised
  float epsilon;
  int64_t count;
  int heads, head_width;
  void* pages;            // the layer's part of page 0
  int64_t page_elements;  // from one page to the next
};
KernelCall AppendRowsCall(const AppendRows& arguments);

// The stored data of a row whose chunk is not yet full: x, key and value before DualLN, logits of the dynamic
// projection; float32.
//   open chunk page  [layers][C][OpenRowFloats]
constexpr int64_t OpenRowFloats(int64_t width, int64_t logit_columns) {
  return (3 * width + logit_columns + 3) / 4 * 4;
}

// A layer's results for the rows of a step.
struct ChunkRows {
  ElementType row;
  Rows inputs;       // [rows, d]
  Rows keys_values;  // [rows, 2, d], before DualLN
  Rows logits;       // [rows, H*R]
  int heads, head_width, chunk_size, chunk_rank;
  float* open_chunks;   // the layer's part of page 0
  int64_t page_floats;  // from one page to the next
};

struct KeepRows {
  ChunkRows rows;
  const int64_t* kept_rows;   // [count]; < 0: not stored
  const int64_t* kept_slots;  // [count]
  int64_t count;
};
KernelCall KeepRowsCall(const KeepRows& arguments);

// The dynamic projection of chunks that become full (equation 3 of the paper): for head h and rank t, the weights of a
// chunk's C rows are the softmax over them of logits[h * R + t], and each head's slice of the channels is mixed by
// them. Both forms use the results. A segment's vectors are DualLN of the mixed keys and values ("project, then mix").
// The memory's vectors are DualLN of the keys' and values' maps of the mixed inputs ("mix, then project"). REQUIRES:
// KeepRows of this step has not run. A chunk's bits depend on its rows only, not on how they were split into steps.
struct MixChunks {
  ChunkRows rows;
  const int64_t* chunk_ends;   // [count]: the step's row of its last token; < 0: none
  const int64_t* chunk_kept;   // [count]: number of its first rows that are on an open chunk page
  const int64_t* chunk_pages;  // [count]: that page
  int64_t count;
  Rows mixed_inputs;       // [count * R, d]
  Rows mixed_keys_values;  // [count * R, 2, d]
};
KernelCall MixChunksCall(const MixChunks& arguments);

}  // namespace longshort::models::cuda
