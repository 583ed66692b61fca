#include "models/ops/layer_halves/layer_halves_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(int64_t BeforeAttentionScratchFloats(const BeforeAttention& half);
                  int64_t AfterAttentionScratchFloats(const AfterAttention& half);
                  void RunBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& rows, float* scratch);
                  void DifferentiateBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& rows,
                                                    const BeforeAttentionGradient& gradient, float* scratch);
                  void RunAfterAttention(const AfterAttention& half, const AfterAttentionRows& rows, float* scratch);
                  void DifferentiateAfterAttention(const AfterAttention& half, const AfterAttentionRows& rows,
                                                   const AfterAttentionGradient& gradient, float* scratch);)

int64_t BeforeAttentionScratchFloats(const BeforeAttention& half) {
  return baseline::BeforeAttentionScratchFloats(half);
}

int64_t AfterAttentionScratchFloats(const AfterAttention& half) { return baseline::AfterAttentionScratchFloats(half); }

void RunBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& rows, float* scratch,
                        InstructionSet set) {
  LONGSHORT_CALL(set, RunBeforeAttention, half, rows, scratch)
}

void DifferentiateBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& rows,
                                  const BeforeAttentionGradient& gradient, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, DifferentiateBeforeAttention, half, rows, gradient, scratch)
}

void RunAfterAttention(const AfterAttention& half, const AfterAttentionRows& rows, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, RunAfterAttention, half, rows, scratch)
}

void DifferentiateAfterAttention(const AfterAttention& half, const AfterAttentionRows& rows,
                                 const AfterAttentionGradient& gradient, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, DifferentiateAfterAttention, half, rows, gradient, scratch)
}

}  // namespace longshort::models::cpu
