// Products of rows, for the bodies of attention kernels. A body is compiled once for each instruction set
// (LONGSHORT_INSTRUCTION_SET names the namespace). It uses only builtins and plain loops: the linker could keep the
// AVX-512 copy of a library's inline function for every processor.
//
// All products have the form out = left * right. `left` is read one number at a time, so it may be transposed. `right`
// and `out` are accessed kLanes columns at a time, so their rows are padded.
#pragma once

#include <cstdint>

#include "models/ops/rows/lanes_body.h"

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

struct Left {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
};

// kRows x (kVectors * kLanes) numbers of the result, held in registers if there are enough (not with the baseline set).
// `start`: null, or one number for each row, which its sums begin with.
template <int kRows, int kVectors, bool kAdd>
LS_INLINE void MultiplyTile(int64_t inner, const Left& left, const float* right, int64_t right_stride, float* out,
                            int64_t out_stride, const float* start) {
  Lanes sums[kRows][kVectors];
  LS_UNROLL
  for (int i = 0; i < kRows; ++i) {
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[i][v] = Lanes{};
      if (kAdd) Load(out + i * out_stride + v * kLanes, sums[i][v]);
      if (start != nullptr) sums[i][v] = sums[i][v] + start[i];
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

// Sums of kLanes floats in a tile: as many as leave registers for a row of `right` and a factor.
inline constexpr int kTileSums = kRegisterCount * 3 / 4 / kParts;
inline constexpr int kTileVectors = kTileSums >= 24 ? 4 : 1;

// Rows of `right` that are read for all rows of the result before the next ones, so that they stay in the L2 cache.
inline constexpr int64_t kInnerBlock = 768;

// kVectors * kLanes columns of all rows of the result.
template <int kVectors, bool kAdd>
LS_INLINE void MultiplyColumns(int64_t rows, int64_t inner, const Left& left, const float* right, int64_t right_stride,
                               float* out, int64_t out_stride, const float* start) {
  int64_t row = 0;
  const auto tiles = [&]<int kRows>() {
    for (; row + kRows <= rows; row += kRows) {
      MultiplyTile<kRows, kVectors, kAdd>(
          inner, {left.data + row * left.row_stride, left.row_stride, left.column_stride}, right, right_stride,
          out + row * out_stride, out_stride, start == nullptr ? nullptr : start + row);
    }
  };
  constexpr int kMostRows = kTileSums / kVectors < 12 ? kTileSums / kVectors : 12;
  tiles.template operator()<kMostRows>();
  if constexpr (kMostRows > 4) tiles.template operator()<4>();
  if constexpr (kMostRows > 2) tiles.template operator()<2>();
  tiles.template operator()<1>();
}

template <bool kAdd>
void MultiplyBlock(int64_t rows, int64_t inner, int64_t columns, const Left& left, const float* right,
                   int64_t right_stride, float* out, int64_t out_stride, const float* start) {
  int64_t column = 0;
  const auto vectors = [&]<int kVectors>() {
    for (; column + kVectors * kLanes <= columns; column += kVectors * kLanes) {
      MultiplyColumns<kVectors, kAdd>(rows, inner, left, right + column, right_stride, out + column, out_stride, start);
    }
  };
  vectors.template operator()<kTileVectors>();
  if constexpr (kTileVectors > 2) vectors.template operator()<2>();
  if constexpr (kTileVectors > 1) vectors.template operator()<1>();
}

// out[rows][columns] = (kAdd: +=) left[rows][inner] * right[inner][columns]; columns is a multiple of kLanes. Each sum
// adds its products in order.
//   start  null, or [rows]: one more addend of all columns
template <bool kAdd>
void Multiply(int64_t rows, int64_t inner, int64_t columns, const Left& left, const float* right, int64_t right_stride,
              float* out, int64_t out_stride, const float* start = nullptr) {
  const auto block = [inner](int64_t first) { return inner - first < kInnerBlock ? inner - first : kInnerBlock; };
  MultiplyBlock<kAdd>(rows, block(0), columns, left, right, right_stride, out, out_stride, start);
  for (int64_t first = kInnerBlock; first < inner; first += kInnerBlock) {
    MultiplyBlock<true>(rows, block(first), columns,
                        {left.data + first * left.column_stride, left.row_stride, left.column_stride},
                        right + first * right_stride, right_stride, out, out_stride, nullptr);
  }
}

LS_INLINE float Dot(int64_t width, const float* a, const float* b) {
  Lanes sums{}, x, y;
  for (int64_t c = 0; c < width; c += kLanes) {
    Load(a + c, x);
    Load(b + c, y);
    sums += x * y;
  }
  return Sum(sums);
}

LS_INLINE void Fill(float* to, int64_t count, float value) {
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

LS_INLINE float* Take(float*& scratch, int64_t floats) {
  float* const taken = scratch;
  scratch += floats;
  return taken;
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
