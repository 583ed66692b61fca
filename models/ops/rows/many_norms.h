// Norms of rows of a classifier's layers on GPUs.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// output[i] = LayerNorm(input[i]).
struct RowNorm {
  Rows input;
  NormWeights norm;
  Rows output;
};

// Up to two kinds of rows, for example keys and values, in one launch. Unlike NormRows, rows are of one type, and a
// warp computes a row: there are tens of thousands. A row's bits do not depend on the other rows.
struct ManyNorms {
  ElementType element;  // of all rows
  int64_t count;        // rows of a kind
  int width;
  float epsilon;
  int kinds;
  RowNorm each[2];
};
KernelCall ManyNormsCall(const ManyNorms& arguments);

}  // namespace longshort::models::cuda
