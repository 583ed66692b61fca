// Layer normalisation of rows, and its gradient, for the bodies of kernels (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"
#include "models/ops/rows/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

struct Statistics {
  float mean, scale;  // scale: 1 / deviation
};

// work(first column, x) for vectors of a row; numbers beyond its end are `filling`.
template <typename Work>
LS_INLINE void ForEachVector(const float* row, int64_t width, float filling, const Work& work) {
  Lanes x;
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    Load(row + c, x);
    work(c, x);
  }
  if (c == width) return;
  float rest[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) rest[i] = c + i < width ? row[c + i] : filling;
  Load(rest, x);
  work(c, x);
}

LS_INLINE Statistics StatisticsOf(const RowNorm& norm, int64_t width, const float* x) {
  Lanes sums{}, squares{};
  ForEachVector(x, width, 0.0f, [&](int64_t, const Lanes& value) { sums += value; });
  const float mean = Sum(sums) / static_cast<float>(width);
  ForEachVector(x, width, mean, [&](int64_t, const Lanes& value) {
    const Lanes centred = value - mean;
    squares += centred * centred;
  });
  return {mean, 1.0f / __builtin_sqrtf(Sum(squares) / static_cast<float>(width) + norm.epsilon)};
}

// y = norm(x), where y may be x; without a norm a copy.
void Normalize(const RowNorm& norm, int64_t rows, int64_t width, const HeadRows<const float>& x,
               const HeadRows<float>& y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = x.data + row * x.stride;
    float* const to = y.data + row * y.stride;
    if (norm.gain == nullptr) {
      for (int64_t c = 0; c < width; ++c) to[c] = from[c];
      continue;
    }
    const Statistics of = StatisticsOf(norm, width, from);
    ForEachVector(from, width, 0.0f, [&](int64_t c, const Lanes& value) {
      Lanes normal = (value - of.mean) * of.scale;
      if (c + kLanes > width) {
        float rest[kLanes];
        Store(normal, rest);
        for (int64_t j = 0; c + j < width; ++j) to[c + j] = rest[j] * norm.gain[c + j] + norm.bias[c + j];
        return;
      }
      Lanes gain, bias;
      Load(norm.gain + c, gain);
      Load(norm.bias + c, bias);
      normal = normal * gain;
      normal += bias;
      Store(normal, to + c);
    });
  }
}

// The gradient of Normalize: to_x = (kAdd: +=) that of x; adds to those of gain and bias. Rows of y's gradient are
// `width` floats apart. REQUIRES: width is a multiple of kLanes.
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
