// Products of rows with panels of weights, for CPUs.
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

// --- products of float32 rows with panels of int8 weights, and the row-wise work around products of bfloat16 numbers
// ---

// Outputs of a panel of weights.
inline constexpr int64_t kPanelOutputs = 64;
// Inputs that share a scale.
inline constexpr int64_t kGroupInputs = 64;

// Adjacent inputs of an output, whose numbers share a word of 32 bits.
inline constexpr int64_t kWordInputs = 4;

// The weights of kPanelOutputs outputs for some inputs: numbers [inputs / kWordInputs][kPanelOutputs][kWordInputs]. A
// weight is its number times the scale of its group and output: scales [groups][kPanelOutputs]. The last group may be
// shorter.
struct Int8Panel {
  const int8_t* numbers = nullptr;
  const float* scales = nullptr;
  int64_t inputs = 0;  // a multiple of kWordInputs
};

// Writes out [count][kPanelOutputs] = rows [count][panel.inputs] * panel. REQUIRES: the processor supports `set`.
void MultiplyInt8(const Int8Panel& panel, const HeadRows<const float>& rows, int64_t count, const HeadRows<float>& out,
                  InstructionSet set = BestInstructionSet());

// Writes the panel's weights, [inputs][kPanelOutputs].
void WidenInt8(const Int8Panel& panel, const HeadRows<float>& weights, InstructionSet set = BestInstructionSet());

// Widens bfloat16 weights in pairs of inputs, [inputs / 2][kPanelOutputs][2], to [inputs][kPanelOutputs].
void WidenPairs(const BFloat16* pairs, int64_t inputs, const HeadRows<float>& weights,
                InstructionSet set = BestInstructionSet());

// Writes the panel's weights, rounded to bfloat16, in pairs of inputs: [inputs / 2][kPanelOutputs][2], as bfloat16
// products read them.
void WidenToPairs(const Int8Panel& panel, BFloat16* pairs, InstructionSet set = BestInstructionSet());

// Rounds to the nearest bfloat16, halves to even.
void RoundToBFloat16(const float* from, int64_t count, BFloat16* to, InstructionSet set = BestInstructionSet());

// What is added to a product, row by row. Null data: nothing.
struct Summands {
  const float* bias = nullptr;  // [columns]
  HeadRows<const float> rows = {};
};

// Adds the bias to rows [count][columns], then takes gelu of them, by erf, if `gelu`, then adds the other rows.
void FinishProduct(const HeadRows<float>& rows, int64_t count, int64_t columns, const Summands& added, bool gelu,
                   InstructionSet set = BestInstructionSet());

// --- products of int8 rows with panels of int8 weights, by AVX-512's dot products of bytes (VNNI) ---

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

// --- products of float32 rows with panels of float32 weights, for the rows of whole images: as fast as the processor
// multiplies, because nothing is copied at each call ---

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
