#include "models/ops/full_attention/full_attention_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(void AttendFully(const FullHead& head, const HeadRows<float>& attended, float* scratch);)

int64_t AttendFullyScratchFloats(const FullHead& head) {
  const int64_t tokens = head.tokens, stride = SpreadStride(tokens), padded_width = PaddedHeadWidth(head.head_width);
  return head.head_width * stride + tokens * padded_width + kFullQueries * (head.head_width + stride + padded_width);
}

void AttendFully(const FullHead& head, const HeadRows<float>& attended, float* scratch, InstructionSet set) {
  LONGSHORT_CALL(set, AttendFully, head, attended, scratch)
}

}  // namespace longshort::models::cpu
