// The dynamic projection of whole items (equation 3 of the paper): a document's or an image's rows are compressed to R
// vectors per head, by weights that depend on the rows, and DualLN normalises the vectors. For head h and vector t
//   w = softmax over the item's rows of logits[h * R + t];  vector_t = DualLN(sum_rows w_row * row's channels of h)
// and the same for values. Equals the reference op (models/ops/landmarks/dynamic_projection.h) with one chunk per item.
//
// Rows are split for parallelism. Each kLandmarkSplitRows rows of an item, from its first row on, are folded in blocks
// of 64 with tensor core products, and a second kernel merges the splits in order. An item's bits do not depend on the
// other items.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

constexpr int kLandmarkSplitRows = 256;
constexpr int64_t LandmarkSplitsOf(int64_t rows) { return (rows + kLandmarkSplitRows - 1) / kLandmarkSplitRows; }

struct Landmarks {
  ElementType element;  // of all inputs and outputs, and of products; sums are float32
  int heads;
  int head_width;  // at most kMaxHeadWidth
  int rank;        // R
  int items;
  int max_splits;     // LandmarkSplitsOf(most rows of an item)
  ItemRanges ranges;  // each with at least one row

  Rows logits;        // [rows, heads * R]
  Rows keys, values;  // [rows, heads * head_width]
  NormWeights key_norm, value_norm;
  float epsilon;

  // [items * item_vectors, heads * head_width]: an item's landmark t is its vector first_vector + t. The other vectors
  // are CLS's, and are not written.
  Rows landmark_keys, landmark_values;
  int item_vectors, first_vector;

  float* partial_outputs;  // [items, max_splits, 2: keys, values; R; heads; padded head width], workspace
  float* partial_sums;     // [items, max_splits, R, heads, 2]: largest logit and sum of each split, workspace
};

// Launch in this order: the first writes the partial results, the second the landmarks.
KernelCall MixSplitsCall(const Landmarks& arguments);
KernelCall MergeSplitsCall(const Landmarks& arguments);

}  // namespace longshort::models::cuda
