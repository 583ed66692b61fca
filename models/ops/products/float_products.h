// Products of float32 rows with panels of float32 weights, for the rows of whole images: as fast as the processor
// multiplies, because nothing is copied at each call.
#pragma once

#include <cstdint>

#include "models/ops/rows/head_rows.h"
#include "models/ops/rows/instruction_set.h"

namespace longshort::models::cpu {

// Outputs of a panel of weights: 3 vectors, whose sums for 8 rows fill AVX-512's registers.
inline constexpr int64_t kFloatPanelOutputs = 3 * kLanes;

// The weights of some outputs, [inputs][kFloatPanelOutputs]; those beyond `outputs` are 0.
struct FloatPanel {
  const float* weights = nullptr;
  int64_t inputs = 0;
  int64_t outputs = 0;          // at most kFloatPanelOutputs
  const float* bias = nullptr;  // [outputs]; null: none
};

// out [count][panel.outputs] = rows [count][panel.inputs] * panel + bias, then gelu of it (by erf) if `gelu`, plus
// `added` if its data are not null; `added` may be `out`. The bits of a row do not depend on the others. REQUIRES: the
// processor supports `set`; not both `gelu` and `added`.
void MultiplyFloats(const FloatPanel& panel, const HeadRows<const float>& rows, int64_t count,
                    const HeadRows<float>& out, const HeadRows<const float>& added, bool gelu,
                    InstructionSet set = BestInstructionSet());

// out = norm(rows [count][width]).
void NormalizeFloats(const RowNorm& norm, int64_t width, const HeadRows<const float>& rows, int64_t count,
                     const HeadRows<float>& out, InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
