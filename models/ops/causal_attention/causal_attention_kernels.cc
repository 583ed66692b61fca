#include "models/ops/causal_attention/causal_attention_kernels.h"

#include "models/ops/rows/call_kernel.h"

namespace longshort::models::cpu {

LONGSHORT_DECLARE(template <typename Element> void Attend(const AttentionRun<Element>& run);)

template <typename Element>
void Attend(const AttentionRun<Element>& run, InstructionSet set) {
  LONGSHORT_CALL(set, Attend, run)
}

template void Attend(const AttentionRun<float>& run, InstructionSet set);
template void Attend(const AttentionRun<BFloat16>& run, InstructionSet set);

}  // namespace longshort::models::cpu
