// The kernels of the dynamic projection of whole items (equation 3 of the paper): the rows of a document or image are
// compressed to R landmarks per head, weighted means whose weights depend on the rows. For head h and landmark t
//   w = softmax over the item's rows of logits[h * R + t];  landmark_t = sum_rows w_row * row's channels of h
// and the same for values. They equal the reference op (dynamic_projection.h) with one chunk per item.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/cpu_kernels.h"
#include "models/ops/rows/rows.h"

// For CPUs: one head of one document, for training, with the gradient.
namespace longshort::models::cpu {

// One head of one document.
struct LandmarkHead {
  int64_t head_width = 0;  // a multiple of kLanes
  int64_t rows = 0, rank = 0;
  HeadRows<const float> logits;  // rank columns
  HeadRows<const float> keys, values;
};
// All are written.
struct LandmarkOutput {
  float* weights = nullptr;      // [rows][PaddedHeadWidth(rank)], for the gradient
  HeadRows<float> keys, values;  // [rank]
};
struct LandmarkGradient {
  const float* weights = nullptr;
  HeadRows<const float> landmark_keys, landmark_values;        // results of the forward pass
  HeadRows<const float> to_landmark_keys, to_landmark_values;  // their gradients
  HeadRows<float> logits, keys, values;                        // written
};

void MixLandmarks(const LandmarkHead& head, const LandmarkOutput& output, InstructionSet set = BestInstructionSet());

int64_t LandmarkGradientScratchFloats(const LandmarkHead& head);
void DifferentiateLandmarks(const LandmarkHead& head, const LandmarkGradient& gradient, float* scratch,
                            InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu

// For GPUs: a batch of items. DualLN normalises the landmarks.
//
// Rows are split for parallelism. Each kLandmarkSplitRows rows of an item, from its first row on, are folded in blocks
// of 64 with tensor core products, and a second kernel merges the splits in order. An item's bits do not depend on the
// other items.
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

  // An item's vector before its landmarks, as CLS's: [items, heads * head_width]. Null: none.
  Rows keys_before, values_before;
  bool norms_before;  // it is normalised, too; otherwise it is copied
  // [items * n, heads * head_width]: n vectors of each item, the one before its landmarks first.
  Rows landmark_keys, landmark_values;

  float* partial_outputs;  // [items, max_splits, 2: keys, values; R; heads; padded head width], workspace
  float* partial_sums;     // [items, max_splits, R, heads, 2]: largest logit and sum of each split, workspace
};

// Launch in this order: the first writes the partial results, the second the vectors.
KernelCall MixSplitsCall(const Landmarks& arguments);
KernelCall MergeSplitsCall(const Landmarks& arguments);

}  // namespace longshort::models::cuda
