// Products of rows and softmaxes of scores, for the bodies of attention kernels. A body is compiled once for each
// instruction set (LONGSHORT_INSTRUCTION_SET names the namespace). It uses only builtins and plain loops: the linker
// could keep the AVX-512 copy of a library's inline function for every processor.
//
// All products have the form out = left * right. `left` is read one number at a time, so it may be transposed. `right`
// and `out` are accessed kLanes columns at a time, so their rows are padded.
#pragma once

#include <cstdint>

#include "models/kernels/head_rows.h"
#include "models/kernels/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

struct Left {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

// kRows x (kVectors * kLanes) numbers of the result, held in registers if there are enough (not with the baseline set).
template <int kRows, int kVectors, bool kAdd>
LS_INLINE void MultiplyTile(int64_t inner, const Left& left, const float* right, int64_t right_stride, float* out,
                            int64_t out_stride) {
  Lanes sums[kRows][kVectors];
  LS_UNROLL
  for (int i = 0; i < kRows; ++i) {
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = Lanes{};
      if (kAdd) Load(out + i * out_stride + v * kLanes, sums[i][v]);
    }
  }
  for (int64_t k = 0; k < inner; ++k) {
    Lanes columns[kVectors];
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) Load(right + k * right_stride + v * kLanes, columns[v]);
    LS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float factor = left.data[i * left.row_stride + k * left.column_stride];
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[i][v] += columns[v] * factor;
    }
  }
  LS_UNROLL
  for (int i = 0; i < kRows; ++i) {
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) Store(sums[i][v], out + i * out_stride + v * kLanes);
  }
}

inline constexpr int kTileVectors = kSumsInRegisters >= 4 * 2 ? 2 : 1;  // of 4 rows

// Rows of `right` that are read for all rows of the result before the next ones, so that they stay in the L1 cache.
inline constexpr int64_t kInnerBlock = 128;

// kVectors * kLanes columns of all rows of the result.
template <int kVectors, bool kAdd>
LS_INLINE void MultiplyColumns(int64_t rows, int64_t inner, const Left& left, const float* right, int64_t right_stride,
                               float* out, int64_t out_stride) {
  const auto from = [&left](int64_t row) {
    return Left{left.data + row * left.row_stride, left.row_stride, left.column_stride};
  };
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    MultiplyTile<4, kVectors, kAdd>(inner, from(row), right, right_stride, out + row * out_stride, out_stride);
  for (; row < rows; ++row)
    MultiplyTile<1, kVectors, kAdd>(inner, from(row), right, right_stride, out + row * out_stride, out_stride);
}

template <bool kAdd>
void MultiplyBlock(int64_t rows, int64_t inner, int64_t columns, const Left& left, const float* right,
                   int64_t right_stride, float* out, int64_t out_stride) {
  int64_t column = 0;
  for (; column + kTileVectors * kLanes <= columns; column += kTileVectors * kLanes)
    MultiplyColumns<kTileVectors, kAdd>(rows, inner, left, right + column, right_stride, out + column, out_stride);
  if (column < columns)
    MultiplyColumns<1, kAdd>(rows, inner, left, right + column, right_stride, out + column, out_stride);
}

// out[rows][columns] = (kAdd: +=) left[rows][inner] * right[inner][columns]; columns is a multiple of kLanes. Each sum
// adds its products in order.
template <bool kAdd>
void Multiply(int64_t rows, int64_t inner, int64_t columns, const Left& left, const float* right, int64_t right_stride,
              float* out, int64_t out_stride) {
  const auto block = [inner](int64_t first) { return inner - first < kInnerBlock ? inner - first : kInnerBlock; };
  MultiplyBlock<kAdd>(rows, block(0), columns, left, right, right_stride, out, out_stride);
  for (int64_t first = kInnerBlock; first < inner; first += kInnerBlock) {
    MultiplyBlock<true>(rows, block(first), columns,
                        {left.data + first * left.column_stride, left.row_stride, left.column_stride},
                        right + first * right_stride, right_stride, out, out_stride);
  }
}

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

void Unpad(const float* from, int64_t padded, int64_t count, int64_t width, const HeadRows<float>& rows) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < width; ++c) rows.data[i * rows.stride + c] = from[i * padded + c];
  }
}

template <typename Float>
HeadRows<Float> From(const HeadRows<Float>& rows, int64_t first) {
  return {rows.data + first * rows.stride, rows.stride};
}

void Fill(float* to, int64_t count, float value) {
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

float* Take(float*& scratch, int64_t floats) {
  float* const taken = scratch;
  scratch += floats;
  return taken;
}

// Replaces the scores of one query by probabilities. Returns the log of the sum of e^score. There are `vectors` vectors
// of kLanes scores; padding is -infinity.
float Softmax(float* scores, int64_t vectors) {
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
  const float sum = Sum(sums), scale = 1.0f / sum;
  for (int64_t v = 0; v < vectors; ++v) {
    Load(scores + v * kLanes, x);
    x = x * scale;
    Store(x, scores + v * kLanes);
  }
  return maximum + __builtin_logf(sum);
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
