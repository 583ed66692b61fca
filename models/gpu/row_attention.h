// Attention of rows, both ways in their item (a document, an image), to a window of the item's rows and to a few
// vectors that all of the item's rows see, with one softmax over both: what document_attention.h and
// window_attention_2d.h have in common.
//   scores  s_j = scale * q . k_j (+ bias_j);  output  sum_j softmax(s)_j v_j
//
// A block of the GPU has up to kTileRows rows of one item, and one head. Keys are folded in blocks of 64, shared
// vectors first; each block has a softmax of its own, and is merged into those before as in causal_attention.h. Which
// rows make a tile, and where blocks begin, depends on the item only: so do a row's bits.
#pragma once

#include <cstdint>

#include "models/gpu/pages.h"
#include "models/gpu/rows.h"

namespace longshort::models::cuda {

struct RowAttention {
  ElementType element;  // of all that is read and written; products are of this type, with sums in float32
  int heads;
  int head_width;  // at most kMaxHeadWidth
  float scale;     // 1/sqrt(head_width), where queries are not scaled

  Rows queries, keys, values;       // [rows, heads * head_width]
  int shared;                       // m >= 0
  Rows shared_keys, shared_values;  // [items * m, heads * head_width]
  Rows output;                      // [rows, heads * head_width]
};

}  // namespace longshort::models::cuda
