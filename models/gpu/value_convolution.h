// Convolution of values along the positions of their document, each head with taps of its own, added to rows; as the
// reference op ConvolveValues (models/attention/long_short_attention_1d.h). With positions p and half = taps / 2:
//   sums_i += sum_j taps[p_j - p_i + half] values_j, over rows j of the document with |p_j - p_i| <= half
// Masked positions have no rows. A row's bits depend on its document only.
#pragma once

#include <cstdint>

#include "models/gpu/document_attention.h"
#include "models/gpu/kernel_call.h"
#include "models/gpu/rows.h"

namespace longshort::models::cuda {

struct ValueConvolution {
  ElementType element;  // of all that is read and written; sums are float32, and rounded once
  int heads;
  int head_width;
  int kernel;                 // taps of a head, odd
  const void* taps;           // [heads, kernel]; the middle one meets the row's own position
  const int64_t* positions;   // [rows], ascending within a document
  const ItemRows* documents;  // [documents]
  const DocumentTile* tiles;  // [tile_count]; their keys are not used
  int tile_count;

  Rows values;  // [rows, heads * head_width]
  Rows sums;    // [rows, heads * head_width], none of the values'
};
KernelCall ValueConvolutionCall(const ValueConvolution& arguments);

}  // namespace longshort::models::cuda
