#include "models/ops/cls_attention/cls_attention_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(void AttendFromCls(const ClsHead& head, float* weights, float* attended);
                  void DifferentiateCls(const ClsHead& head, const ClsGradient& gradient, float* scratch);)

void AttendFromCls(const ClsHead& head, float* weights, float* attended, InstructionSet set) {
  LONGSHORT_CALL(set, AttendFromCls, head, weights, attended)
}

void DifferentiateCls(const ClsHead& head, const ClsGradient& gradient, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, DifferentiateCls, head, gradient, scratch)
}

}  // namespace longshort::models::cpu
