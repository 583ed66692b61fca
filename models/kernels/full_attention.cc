#include "models/kernels/full_attention.h"

#include "models/kernels/call_kernel.h"

namespace longshort::models::cpu {

#define LONGSHORT_DECLARE_FULL_ATTENTION(set)                                              \
  namespace set {                                                                          \
  void AttendFully(const FullHead& head, const HeadRows<float>& attended, float* scratch); \
  }
LONGSHORT_DECLARE_FULL_ATTENTION(avx512)
LONGSHORT_DECLARE_FULL_ATTENTION(avx2)
LONGSHORT_DECLARE_FULL_ATTENTION(baseline)
#undef LONGSHORT_DECLARE_FULL_ATTENTION

int64_t AttendFullyScratchFloats(const FullHead& head) {
  const int64_t tokens = head.tokens, stride = FullScoreStride(tokens), padded_width = PaddedHeadWidth(head.head_width);
  return head.head_width * stride + tokens * padded_width + kFullQueries * (head.head_width + stride + padded_width);
}

void AttendFully(const FullHead& head, const HeadRows<float>& attended, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, AttendFully, head, attended, scratch)
}

}  // namespace longshort::models::cpu
