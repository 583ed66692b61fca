#include "models/kernels/cls_attention.h"

#include "models/kernels/call_kernel.h"

namespace longshort::models::cpu {

#define LONGSHORT_DECLARE_CLS_ATTENTION(set)                                               \
  namespace set {                                                                          \
  void AttendFromCls(const ClsHead& head, float* weights, float* attended);                \
  void DifferentiateCls(const ClsHead& head, const ClsGradient& gradient, float* scratch); \
  }
LONGSHORT_DECLARE_CLS_ATTENTION(avx512)
LONGSHORT_DECLARE_CLS_ATTENTION(avx2)
LONGSHORT_DECLARE_CLS_ATTENTION(baseline)
#undef LONGSHORT_DECLARE_CLS_ATTENTION

void AttendFromCls(const ClsHead& head, float* weights, float* attended, InstructionSet set) {
  LONGSHORT_CALL(set, AttendFromCls, head, weights, attended)
}

void DifferentiateCls(const ClsHead& head, const ClsGradient& gradient, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, DifferentiateCls, head, gradient, scratch)
}

}  // namespace longshort::models::cpu
