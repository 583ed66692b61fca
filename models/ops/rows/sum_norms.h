// Norms of rows of a classifier's layers on GPUs, with the residual sums before them.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// output[i] = LayerNorm(sum[i]), sum[i] = input[i] + addend[i]. The norm is that of the sum before it is rounded.
struct SumNorm {
  Rows input;
  Rows addend;  // null: none
  Rows sum;     // null: not written; may be the input
  NormWeights norm;
  Rows output;
};

// Up to two kinds of rows, for example keys and values, in one launch. Unlike NormRows, rows are of one type, and a
// warp computes a row: there are tens of thousands. A row's bits do not depend on the other rows.
struct SumNorms {
  ElementType element;  // of all rows
  int64_t count;        // rows of a kind
  int width;
  float epsilon;
  int kinds;
  SumNorm each[2];
};
KernelCall SumNormsCall(const SumNorms& arguments);

}  // namespace longshort::models::cuda
