// The common part of document_attention.h and window_attention_2d.h: bidirectional attention of the rows of an item (a
// document, an image) to a window of its rows and to a few shared vectors, with one softmax over both.
//   scores  s_j = scale * q . k_j (+ bias_j);  output  sum_j softmax(s)_j v_j
//
// A thread block has up to kTileRows rows of one item, and one head. Keys are folded in blocks of 64, shared vectors
// first. Each block of keys has its own softmax, which is merged into the running one as in causal_attention.h. Tiles
// and blocks of keys depend on the item only, and so do a row's bits.
#pragma once

#include <cstdint>

#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

struct RowAttention {
  ElementType element;  // of all inputs and outputs, and of products; sums are float32
  int heads;
  int head_width;  // at most kMaxHeadWidth
  float scale;     // 1/sqrt(head_width), or 1 if queries are already scaled

  Rows queries, keys, values;       // [rows, heads * head_width]
  int shared;                       // m >= 0
  Rows shared_keys, shared_values;  // [items * m, heads * head_width]
  Rows output;                      // [rows, heads * head_width]
};

}  // namespace longshort::models::cuda
