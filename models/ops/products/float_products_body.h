// The body of MultiplyFloats and NormalizeFloats, compiled once for each instruction set (row_products_body.h).
#pragma once

#include <cstdint>

#include "models/ops/products/product_kernels.h"
#include "models/ops/products/row_products_body.h"
#include "models/ops/rows/row_norms_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

// A tile's sums: as many rows and vectors as leave registers for a row of weights and a factor.
inline constexpr int kPanelTileVectors = kTileSums >= 24 ? 3 : 1;
inline constexpr int kPanelTileRows = kTileSums / kPanelTileVectors;

// The product of kRows rows with kVectors vectors of a panel, behind what `out` has.
template <int kRows, int kVectors>
void AddProducts(const FloatPanel& panel, int64_t first_output, const HeadRows<const float>& rows, float* out,
                 int64_t out_stride) {
  for (int64_t input = 0; input < panel.inputs; input += kInnerBlock) {
    MultiplyTile<kRows, kVectors, true>(Min(panel.inputs - input, kInnerBlock), {rows.data + input, rows.stride, 1},
                                        panel.weights + input * kFloatPanelOutputs + first_output, kFloatPanelOutputs,
                                        out + first_output, out_stride, nullptr);
  }
}

template <int kRows>
void AddRows(const FloatPanel& panel, const HeadRows<const float>& rows, float* out, int64_t out_stride) {
  int64_t output = 0;
  for (; output + kPanelTileVectors * kLanes <= PaddedHeadWidth(panel.outputs); output += kPanelTileVectors * kLanes)
    AddProducts<kRows, kPanelTileVectors>(panel, output, rows, out, out_stride);
  for (; output < panel.outputs; output += kLanes) AddProducts<kRows, 1>(panel, output, rows, out, out_stride);
}

// Calls AddRows<count>, for 1 <= count <= kRows.
template <int kRows>
void AddCountedRows(int64_t count, const FloatPanel& panel, const HeadRows<const float>& rows, float* out,
                    int64_t out_stride) {
  if constexpr (kRows > 1) {
    if (count < kRows) return AddCountedRows<kRows - 1>(count, panel, rows, out, out_stride);
  }
  AddRows<kRows>(panel, rows, out, out_stride);
}

// Asks for lines of the next panel, which is behind this one, before it is used: it would come too slowly.
inline constexpr int64_t kLineFloats = 16;
LS_INLINE void Prefetch(const float* panel, int64_t begin, int64_t end) {
  for (int64_t line = begin; line < end; ++line) __builtin_prefetch(panel + line * kLineFloats, 0, 2);
}

// row = bias + added (null: 0), of `columns` numbers, a multiple of kLanes.
void BeginRow(const float* bias, const float* added, int64_t columns, float* row) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    Lanes x, more;
    Load(bias + c, x);
    if (added != nullptr) {
      Load(added + c, more);
      x += more;
    }
    Store(x, row + c);
  }
}

}  // namespace

void MultiplyFloats(const FloatPanel& panel, const HeadRows<const float>& rows, int64_t count,
                    const HeadRows<float>& out, const HeadRows<const float>& added, bool gelu) {
  const int64_t columns = PaddedHeadWidth(panel.outputs), tiles = (count + kPanelTileRows - 1) / kPanelTileRows;
  const int64_t lines = panel.inputs * kFloatPanelOutputs / kLineFloats;
  float bias[kFloatPanelOutputs] = {};
  for (int64_t c = 0; c < panel.outputs && panel.bias != nullptr; ++c) bias[c] = panel.bias[c];
  // Vectors would exceed rows that are not a multiple of them: such a tile is computed elsewhere.
  const bool in_place = columns == panel.outputs;
  float elsewhere[kPanelTileRows * kFloatPanelOutputs], added_row[kFloatPanelOutputs] = {};
  for (int64_t tile = 0; tile < tiles; ++tile) {
    // Tiles of about the same size: in one of few rows, the processor waits for its sums.
    const int64_t first = tile * count / tiles, tile_rows = (tile + 1) * count / tiles - first;
    float* const to = in_place ? out.data + first * out.stride : elsewhere;
    const int64_t stride = in_place ? out.stride : kFloatPanelOutputs;
    for (int64_t row = 0; row < tile_rows; ++row) {
      const float* of_row = added.data == nullptr ? nullptr : added.data + (first + row) * added.stride;
      if (of_row != nullptr && !in_place) {
        for (int64_t c = 0; c < panel.outputs; ++c) added_row[c] = of_row[c];
        of_row = added_row;
      }
      BeginRow(bias, of_row, columns, to + row * stride);
    }
    Prefetch(panel.weights + panel.inputs * kFloatPanelOutputs, tile * lines / tiles, (tile + 1) * lines / tiles);
    AddCountedRows<kPanelTileRows>(tile_rows, panel, {rows.data + first * rows.stride, rows.stride}, to, stride);
    for (int64_t row = 0; row < tile_rows; ++row) {
      if (gelu) GeluRow(columns, to + row * stride, to + row * stride);
      for (int64_t c = 0; c < panel.outputs && !in_place; ++c)
        out.data[(first + row) * out.stride + c] = to[row * stride + c];
    }
  }
}

void NormalizeFloats(const RowNorm& norm, int64_t width, const HeadRows<const float>& rows, int64_t count,
                     const HeadRows<float>& out) {
  Normalize(norm, count, width, rows, out);
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
