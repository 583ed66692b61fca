// Convolves values along the positions of their document, with separate taps for each head, and adds the result to
// rows. Equals the reference op ConvolveValues (models/ops/document_attention/document_attention.h). With
// positions p and half = taps / 2:
//   sums_i += sum_j taps[p_j - p_i + half] values_j, over rows j of the document with |p_j - p_i| <= half
// Masked positions have no rows. A row's bits depend on its document only.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

struct ValueConvolution {
  ElementType element;  // of all inputs and outputs; sums are float32, and rounded once
  int heads;
  int head_width;
  int kernel;                 // taps of a head, odd
  const void* taps;           // [heads, kernel]; the middle one applies to the row's own position
  const int64_t* positions;   // [rows], ascending within a document
  const ItemRows* documents;  // [documents]
  const DocumentTile* tiles;  // [tile_count]; only their rows are used
  int tile_count;

  Rows values;  // [rows, heads * head_width]
  Rows sums;    // [rows, heads * head_width], must not overlap `values`
};
KernelCall ValueConvolutionCall(const ValueConvolution& arguments);

}  // namespace longshort::models::cuda
