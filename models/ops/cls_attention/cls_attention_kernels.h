// Attention from one row of a document, such as CLS, to the document's rows for training, with its gradient.
#pragma once

#include <cstdint>

#include "models/ops/rows/head_rows.h"
#include "models/ops/rows/instruction_set.h"

namespace longshort::models::cpu {

// One head: the row sees its own key and value, and the document's rows.
struct ClsHead {
  int64_t head_width = 0;  // a multiple of kLanes
  int64_t rows = 0;
  const float* query = nullptr;  // [head_width], scaled
  const float *own_key = nullptr, *own_value = nullptr;
  HeadRows<const float> keys, values;
};
// All are written.
struct ClsGradient {
  const float* weights = nullptr;   // from the forward pass
  const float* attended = nullptr;  // [head_width]
  float *query = nullptr, *own_key = nullptr, *own_value = nullptr;
  HeadRows<float> keys, values;
};
// The number of weights that the forward pass keeps: that of the own key, those of the rows, and padding.
inline int64_t ClsWeights(int64_t rows) { return PaddedHeadWidth(1 + rows); }

//   weights   [ClsWeights(rows)], written for the gradient
//   attended  [head_width], written
void AttendFromCls(const ClsHead& head, float* weights, float* attended, InstructionSet set = BestInstructionSet());

//   scratch   [ClsWeights(rows)]
void DifferentiateCls(const ClsHead& head, const ClsGradient& gradient, float* scratch,
                      InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
