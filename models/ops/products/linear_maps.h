// Linear maps of many rows on a GPU, with the activation or the sum behind them in one kernel. Pointers are device
// pointers.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// output[i] = activation(weight rows[i] + bias) + addend[i]. Sums are float32, and only the output is rounded. A row's
// bits do not depend on the other rows or on their number.
struct LinearMap {
  ElementType element;  // of all operands
  int64_t count;
  int width, outputs;
  Rows rows;         // [count, width]
  Rows weight;       // [outputs, width]
  const void* bias;  // [outputs]; null: none
  RowActivation activation;
  Rows addend;  // [count, outputs]; null: none; may be the output
  Rows output;  // [count, outputs]
};
KernelCall LinearMapCall(const LinearMap& arguments);
// The same with `side` rows and outputs in a thread block's tile: 64 or 128.
KernelCall LinearMapCall(const LinearMap& arguments, int side);

}  // namespace longshort::models::cuda
