// Padded copies of one head's rows and the softmax of a row of scores, for the bodies of attention kernels
// (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/kernels/head_rows.h"
#include "models/kernels/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// Copies rows to rows of `padded` floats, padded with zeros.
void Pad(const HeadRows<const float>& rows, int64_t count, int64_t width, float* to, int64_t padded) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) to[i * padded + c] = rows.data[i * rows.stride + c];
    for (int64_t c = width; c < padded; ++c) to[i * padded + c] = 0;
  }
}

// Transposes rows: to[channel][row], padded with zeros to `padded` columns.
void Transpose(const HeadRows<const float>& rows, int64_t count, int64_t width, float* to, int64_t padded) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) to[c * padded + i] = rows.data[i * rows.stride + c];
  }
  for (int64_t c = 0; c < width; ++c) {
    for (int64_t i = count; i < padded; ++i) to[c * padded + i] = 0;
  }
}

LS_INLINE void Unpad(const float* from, int64_t padded, int64_t count, int64_t width, const HeadRows<float>& rows) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) rows.data[i * rows.stride + c] = from[i * padded + c];
  }
}

// The same, divided by `sums` [count].
LS_INLINE void UnpadDivided(const float* from, int64_t padded, int64_t count, int64_t width, const float* sums,
                            const HeadRows<float>& rows) {
  for (int64_t i = 0; i < count; ++i) {
    const float scale = 1.0f / sums[i];
    for (int64_t c = 0; c < width; ++c) rows.data[i * rows.stride + c] = from[i * padded + c] * scale;
  }
}

// Copies `count` floats kLanes at a time: up to a vector more is read and written.
LS_INLINE void CopyRun(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Lanes x;
    Load(from + i, x);
    Store(x, to + i);
  }
}

template <typename Float>
HeadRows<Float> From(const HeadRows<Float>& rows, int64_t first) {
  return {rows.data + first * rows.stride, rows.stride};
}

// What was subtracted from scores, and the sum of their exponentials.
struct ExponentialSum {
  float maximum = 0, sum = 0;
};

// Replaces the scores of one query by e^(score - the largest). There are `vectors` vectors of kLanes scores; padding is
// -infinity.
LS_INLINE ExponentialSum Exponentials(float* scores, int64_t vectors) {
  Lanes largest, x;
  Load(scores, largest);
  for (int64_t v = 1; v < vectors; ++v) {
    Load(scores + v * kLanes, x);
    largest = Larger(x, largest);
  }
  const float maximum = Maximum(largest);
  Lanes sums{};
  for (int64_t v = 0; v < vectors; ++v) {
    Load(scores + v * kLanes, x);
    x = x - maximum;
    Exponential(x);
    Store(x, scores + v * kLanes);
    sums += x;
  }
  return {maximum, Sum(sums)};
}

// The same by probabilities. Returns the log of the sum of e^score.
LS_INLINE float Softmax(float* scores, int64_t vectors) {
  const ExponentialSum of_row = Exponentials(scores, vectors);
  const float scale = 1.0f / of_row.sum;
  for (int64_t v = 0; v < vectors; ++v) {
    Lanes x;
    Load(scores + v * kLanes, x);
    x = x * scale;
    Store(x, scores + v * kLanes);
  }
  return of_row.maximum + __builtin_logf(of_row.sum);
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
