// Padded copies of one head's rows, for the bodies of attention kernels (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"
#include "models/ops/rows/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// Copies rows, times `scale`, to rows of `padded` floats, padded with zeros.
void Pad(const HeadRows<const float>& rows, int64_t count, int64_t width, float* to, int64_t padded,
         float scale = 1.0f) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) to[i * padded + c] = rows.data[i * rows.stride + c] * scale;
    for (int64_t c = width; c < padded; ++c) to[i * padded + c] = 0;
  }
}

// Transposes rows, times `scale`: to[channel][row], padded with zeros to `padded` columns.
void Transpose(const HeadRows<const float>& rows, int64_t count, int64_t width, float* to, int64_t padded,
               float scale = 1.0f) {
  // kLanes rows at once, so that writes are adjacent.
  for (int64_t first = 0; first < count; first += kLanes) {
    const int64_t end = first + kLanes < count ? first + kLanes : count;
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t i = first; i < end; ++i) to[c * padded + i] = rows.data[i * rows.stride + c] * scale;
    }
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

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
