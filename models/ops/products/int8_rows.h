// Products of int8 rows with panels of int8 weights, by AVX-512's dot products of bytes (VNNI).
#pragma once

#include <cstdint>

#include "models/ops/products/int8_products.h"
#include "models/ops/rows/head_rows.h"

namespace longshort::models::cpu {

// A row in int8. Its numbers are stored plus 128, because one operand of the instructions is unsigned. An input is its
// number times the scale of its group of kGroupInputs. Behind the inputs are zeros up to a whole group.
struct Int8Rows {
  const uint8_t* numbers = nullptr;  // [count][groups * kGroupInputs]
  const float* scales = nullptr;     // [count][groups]
  int64_t groups = 0;
};

// Rounds a row to int8, each group by its largest input: numbers [groups * kGroupInputs], scales [groups].
// REQUIRES: HasInt8DotProducts().
void RoundToInt8(const float* row, int64_t inputs, uint8_t* numbers, float* scales);

// Writes out [count][kPanelOutputs] = rows * panel. Sums of a group are exact; groups are added in float32, in order.
//   corrections  [groups][kPanelOutputs]: -128 times the sum of a group's numbers of an output
// REQUIRES: HasInt8DotProducts().
void MultiplyInt8Rows(const Int8Panel& panel, const int32_t* corrections, const Int8Rows& rows, int64_t count,
                      const HeadRows<float>& out);

}  // namespace longshort::models::cpu
