// The body of layer_halves.h, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/layer_halves/layer_halves_kernels.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/row_norms_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// Rows of a block.
inline constexpr int64_t kTrainedRows = 96;

// y = map(x) (kAdd: added to y).
template <bool kAdd>
void Map(const TrainedMap& map, int64_t rows, const float* x, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    float* const to = y + row * map.outputs;
    for (int64_t c = 0; c < map.outputs; ++c) to[c] = (kAdd ? to[c] : 0.0f) + map.bias[c];
  }
  Multiply<true>(rows, map.inputs, map.outputs, {x, map.inputs, 1}, map.transposed, map.outputs, y, map.outputs);
}

// Adds to the gradients of weight and bias.
void AddMapGradient(const TrainedMap& map, int64_t rows, const float* x, const float* to_y,
                    const MapGradient& gradient) {
  for (int64_t c = 0; c < map.outputs; c += kLanes) {
    Lanes sum, value;
    Load(gradient.bias + c, sum);
    for (int64_t row = 0; row < rows; ++row) {
      Load(to_y + row * map.outputs + c, value);
      sum += value;
    }
    Store(sum, gradient.bias + c);
  }
  Multiply<true>(map.outputs, rows, map.inputs, {to_y, 1, map.outputs}, x, map.inputs, gradient.weight, map.inputs);
}

// to_x = the gradient of x.
void DifferentiateInput(const TrainedMap& map, int64_t rows, const float* to_y, float* to_x) {
  Multiply<false>(rows, map.outputs, map.inputs, {to_y, map.outputs, 1}, map.weight, map.inputs, to_x, map.inputs);
}

// Turns the gradient of gelu(inner) into that of inner, and writes gelu(inner).
void DifferentiateGelu(int64_t count, const float* inner, float* gelu, float* gradient) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Lanes x, slope, to;
    Load(inner + i, x);
    LS_UNROLL
    for (int64_t p = 0; p < kParts; ++p) GeluAndSlope(x.part[p], slope.part[p]);
    Store(x, gelu + i);
    Load(gradient + i, to);
    to = to * slope;
    Store(to, gradient + i);
  }
}

}  // namespace

int64_t BeforeAttentionScratchFloats(const BeforeAttention& half) {
  // Normalised rows and their gradient, and the map's results or their gradient.
  return kTrainedRows * (2 * half.width + half.map.outputs);
}

int64_t AfterAttentionScratchFloats(const AfterAttention& half) {
  // Normalised rows, gelu of the inner rows, and the gradients of both.
  return 2 * kTrainedRows * (half.output.outputs + half.in.outputs);
}

void RunBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& all, float* scratch) {
  const int64_t width = half.width, columns = half.map.outputs;
  float* const block = Take(scratch, kTrainedRows * width);
  float* const mapped = scratch;
  for (int64_t first = 0; first < all.rows; first += kTrainedRows) {
    const int64_t rows = Min(kTrainedRows, all.rows - first), offset = first * width;
    float* const normed = all.normed == nullptr ? block : all.normed + offset;
    Normalize(half.norm, rows, width, {all.input + offset, width}, {normed, width});
    Map<false>(half.map, rows, normed, mapped);
    for (int64_t row = 0; row < rows; ++row) {
      const float* const from = mapped + row * columns;
      for (int64_t c = 0; c < width; ++c) all.queries[offset + row * width + c] = from[c];
      for (int64_t c = 0; c < 2 * width; ++c) all.raw[2 * (offset + row * width) + c] = from[width + c];
      for (int64_t c = 0; c < half.logits; ++c) all.logits[(first + row) * half.logits + c] = from[3 * width + c];
    }
    Normalize(half.window_norm, rows, width, {mapped + width, columns}, {all.keys + offset, width});
    Normalize(half.window_norm, rows, width, {mapped + 2 * width, columns}, {all.values + offset, width});
  }
}

void DifferentiateBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& all,
                                  const BeforeAttentionGradient& gradient, float* scratch) {
  const int64_t width = half.width, columns = half.map.outputs;
  float* const normed = Take(scratch, kTrainedRows * width);
  float* const to_normed = Take(scratch, kTrainedRows * width);
  float* const to_mapped = scratch;
  for (int64_t first = 0; first < all.rows; first += kTrainedRows) {
    const int64_t rows = Min(kTrainedRows, all.rows - first), offset = first * width;
    Normalize(half.norm, rows, width, {all.input + offset, width}, {normed, width});
    for (int64_t row = 0; row < rows; ++row) {
      float* const to = to_mapped + row * columns;
      for (int64_t c = 0; c < width; ++c) to[c] = gradient.queries[offset + row * width + c];
      for (int64_t c = 0; c < half.logits; ++c) to[3 * width + c] = gradient.logits[(first + row) * half.logits + c];
      for (int64_t c = 3 * width + half.logits; c < columns; ++c) to[c] = 0;
    }
    const float* const raw = all.raw + 2 * offset;
    DifferentiateNorm<false>(half.window_norm, rows, width, raw, 2 * width, gradient.keys + offset,
                             gradient.window_norm, to_mapped + width, columns);
    DifferentiateNorm<false>(half.window_norm, rows, width, raw + width, 2 * width, gradient.values + offset,
                             gradient.window_norm, to_mapped + 2 * width, columns);
    if (gradient.raw != nullptr) {
      for (int64_t row = 0; row < rows; ++row) {
        float* const to = to_mapped + row * columns + width;
        for (int64_t c = 0; c < 2 * width; ++c) to[c] += gradient.raw[2 * (offset + row * width) + c];
      }
    }
    AddMapGradient(half.map, rows, normed, to_mapped, gradient.map);
    DifferentiateInput(half.map, rows, to_mapped, to_normed);
    if (gradient.normed != nullptr) {
      for (int64_t i = 0; i < rows * width; ++i) to_normed[i] += gradient.normed[offset + i];
    }
    DifferentiateNorm<false>(half.norm, rows, width, all.input + offset, width, to_normed, gradient.norm,
                             gradient.input + offset, width);
  }
}

void RunAfterAttention(const AfterAttention& half, const AfterAttentionRows& all, float* scratch) {
  const int64_t width = half.output.outputs, inner_width = half.in.outputs;
  float* const normed = Take(scratch, kTrainedRows * width);
  float* const gelu = scratch;
  for (int64_t first = 0; first < all.rows; first += kTrainedRows) {
    const int64_t rows = Min(kTrainedRows, all.rows - first), offset = first * width;
    float* const sum = all.sum + offset;
    float* const inner = all.inner + first * inner_width;
    float* const result = all.result + offset;
    for (int64_t i = 0; i < rows * width; ++i) sum[i] = all.input[offset + i];
    Map<true>(half.output, rows, all.attended + offset, sum);
    Normalize(half.norm, rows, width, {sum, width}, {normed, width});
    Map<false>(half.in, rows, normed, inner);
    GeluRow(rows * inner_width, inner, gelu);
    const float* const residual = half.normed_residual ? normed : sum;
    for (int64_t i = 0; i < rows * width; ++i) result[i] = residual[i];
    Map<true>(half.out, rows, gelu, result);
  }
}

void DifferentiateAfterAttention(const AfterAttention& half, const AfterAttentionRows& all,
                                 const AfterAttentionGradient& gradient, float* scratch) {
  const int64_t width = half.output.outputs, inner_width = half.in.outputs;
  float* const normed = Take(scratch, kTrainedRows * width);
  float* const to_normed = Take(scratch, kTrainedRows * width);
  float* const gelu = Take(scratch, kTrainedRows * inner_width);
  float* const to_inner = scratch;
  for (int64_t first = 0; first < all.rows; first += kTrainedRows) {
    const int64_t rows = Min(kTrainedRows, all.rows - first), offset = first * width;
    const float* const inner = all.inner + first * inner_width;
    const float* const sum = all.sum + offset;
    const float* const to_result = gradient.result + offset;
    Normalize(half.norm, rows, width, {sum, width}, {normed, width});
    DifferentiateInput(half.out, rows, to_result, to_inner);
    DifferentiateGelu(rows * inner_width, inner, gelu, to_inner);
    AddMapGradient(half.out, rows, gelu, to_result, gradient.out);
    AddMapGradient(half.in, rows, normed, to_inner, gradient.in);
    DifferentiateInput(half.in, rows, to_inner, to_normed);
    float* const to_sum = gradient.input + offset;
    if (half.normed_residual) {
      for (int64_t i = 0; i < rows * width; ++i) to_normed[i] += to_result[i];
      DifferentiateNorm<false>(half.norm, rows, width, sum, width, to_normed, gradient.norm, to_sum, width);
    } else {
      for (int64_t i = 0; i < rows * width; ++i) to_sum[i] = to_result[i];
      DifferentiateNorm<true>(half.norm, rows, width, sum, width, to_normed, gradient.norm, to_sum, width);
    }
    AddMapGradient(half.output, rows, all.attended + offset, to_sum, gradient.output);
    DifferentiateInput(half.output, rows, to_sum, gradient.attended + offset);
  }
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
