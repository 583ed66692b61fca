// Layer normalisation of rows that follow each other, and its gradient, for the bodies of kernels for training
// (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/kernels/lanes_body.h"
#include "models/kernels/layer_halves.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

struct Statistics {
  float mean, scale;  // scale: 1 / deviation
};

Statistics StatisticsOf(const RowNorm& norm, int64_t width, const float* x) {
  Lanes sums{}, squares{}, value;
  for (int64_t c = 0; c < width; c += kLanes) {
    Load(x + c, value);
    sums += value;
  }
  const float mean = Sum(sums) / static_cast<float>(width);
  for (int64_t c = 0; c < width; c += kLanes) {
    Load(x + c, value);
    value = value - mean;
    squares += value * value;
  }
  return {mean, 1.0f / __builtin_sqrtf(Sum(squares) / static_cast<float>(width) + norm.epsilon)};
}

// y = norm(x); without a norm a copy. Rows are `stride` floats apart in x.
void Normalize(const RowNorm& norm, int64_t rows, int64_t width, const float* x, int64_t stride, float* y) {
  for (int64_t row = 0; row < rows; ++row, x += stride, y += width) {
    if (norm.gain == nullptr) {
      for (int64_t c = 0; c < width; ++c) y[c] = x[c];
      continue;
    }
    const Statistics of = StatisticsOf(norm, width, x);
    for (int64_t c = 0; c < width; c += kLanes) {
      Lanes value, gain, bias;
      Load(x + c, value);
      Load(norm.gain + c, gain);
      Load(norm.bias + c, bias);
      value = (value - of.mean) * of.scale * gain;
      value += bias;
      Store(value, y + c);
    }
  }
}

// The gradient of Normalize: to_x = (kAdd: +=) that of x; adds to those of gain and bias. Rows of y's gradient are
// `width` floats apart.
template <bool kAdd>
void DifferentiateNorm(const RowNorm& norm, int64_t rows, int64_t width, const float* x, int64_t stride,
                       const float* to_y, const NormGradient& gradient, float* to_x, int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row, x += stride, to_y += width, to_x += to_stride) {
    if (norm.gain == nullptr) {
      for (int64_t c = 0; c < width; ++c) to_x[c] = (kAdd ? to_x[c] : 0.0f) + to_y[c];
      continue;
    }
    const Statistics of = StatisticsOf(norm, width, x);
    Lanes value, gain, to, sum, with_gain{}, with_value{};
    for (int64_t c = 0; c < width; c += kLanes) {
      Load(x + c, value);
      Load(norm.gain + c, gain);
      Load(to_y + c, to);
      value = (value - of.mean) * of.scale;
      Load(gradient.bias + c, sum);
      sum += to;
      Store(sum, gradient.bias + c);
      Load(gradient.gain + c, sum);
      sum += to * value;
      Store(sum, gradient.gain + c);
      to = to * gain;
      with_gain += to;
      with_value += to * value;
    }
    const float mean = Sum(with_gain) / static_cast<float>(width), slope = Sum(with_value) / static_cast<float>(width);
    for (int64_t c = 0; c < width; c += kLanes) {
      Load(x + c, value);
      Load(norm.gain + c, gain);
      Load(to_y + c, to);
      value = (value - of.mean) * of.scale;
      to = (to * gain - mean - value * slope) * of.scale;
      if (kAdd) {
        Load(to_x + c, sum);
        to += sum;
      }
      Store(to, to_x + c);
    }
  }
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
