// The body of landmarks.h, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/landmarks/landmarks_kernels.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/padded_rows_body.h"
#include "models/ops/rows/softmax_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// Rows whose gradients of weights stay in the cache.
inline constexpr int64_t kGradientRows = 96;

// Replaces the numbers of each column, [rows][padded], by their softmax.
void SoftmaxOfColumns(int64_t rows, int64_t padded, float* scores) {
  for (int64_t column = 0; column < padded; column += kLanes) {
    float sums[kLanes];
    ExponentialsOfColumns(rows, kLanes, padded, scores + column, sums);
    DivideColumns(rows, kLanes, padded, sums, scores + column);
  }
}

}  // namespace

void MixLandmarks(const LandmarkHead& head, const LandmarkOutput& output) {
  const int64_t rank = head.rank, padded = PaddedHeadWidth(rank), width = head.head_width;
  Pad(head.logits, head.rows, rank, output.weights, padded);
  SoftmaxOfColumns(head.rows, padded, output.weights);
  const Left left{output.weights, 1, padded};
  Multiply<false>(rank, head.rows, width, left, head.keys.data, head.keys.stride, output.keys.data, output.keys.stride);
  Multiply<false>(rank, head.rows, width, left, head.values.data, head.values.stride, output.values.data,
                  output.values.stride);
}

int64_t LandmarkGradientScratchFloats(const LandmarkHead& head) {
  // The columns of both landmarks' gradients, means, and a block of weights' gradients.
  return PaddedHeadWidth(head.rank) * (2 * head.head_width + 1 + kGradientRows);
}

void DifferentiateLandmarks(const LandmarkHead& head, const LandmarkGradient& gradient, float* scratch) {
  const int64_t rank = head.rank, padded = PaddedHeadWidth(rank), width = head.head_width;
  float* const key_columns = Take(scratch, width * padded);
  float* const value_columns = Take(scratch, width * padded);
  float* const means = Take(scratch, padded);
  float* const to_weights = scratch;
  Transpose(gradient.to_landmark_keys, rank, width, key_columns, padded);
  Transpose(gradient.to_landmark_values, rank, width, value_columns, padded);
  // The mean over the rows of a weight's gradient, which the softmax subtracts: by the results, without the rows.
  for (int64_t t = 0; t < rank; ++t) {
    means[t] = Dot(width, From(gradient.to_landmark_keys, t).data, From(gradient.landmark_keys, t).data) +
               Dot(width, From(gradient.to_landmark_values, t).data, From(gradient.landmark_values, t).data);
  }
  for (int64_t first = 0; first < head.rows; first += kGradientRows) {
    const int64_t rows = Min(kGradientRows, head.rows - first);
    const float* const weights = gradient.weights + first * padded;
    const HeadRows<const float> keys = From(head.keys, first), values = From(head.values, first);
    Multiply<false>(rows, width, padded, {keys.data, keys.stride}, key_columns, padded, to_weights, padded);
    Multiply<true>(rows, width, padded, {values.data, values.stride}, value_columns, padded, to_weights, padded);
    for (int64_t row = 0; row < rows; ++row) {
      float* const to = From(gradient.logits, first + row).data;
      for (int64_t t = 0; t < rank; ++t) to[t] = weights[row * padded + t] * (to_weights[row * padded + t] - means[t]);
    }
    Multiply<false>(rows, rank, width, {weights, padded}, gradient.to_landmark_keys.data,
                    gradient.to_landmark_keys.stride, From(gradient.keys, first).data, gradient.keys.stride);
    Multiply<false>(rows, rank, width, {weights, padded}, gradient.to_landmark_values.data,
                    gradient.to_landmark_values.stride, From(gradient.values, first).data, gradient.values.stride);
  }
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
