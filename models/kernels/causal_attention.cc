#include "models/kernels/causal_attention.h"

namespace longshort::models::cpu {
namespace avx512 {
template <typename Element>
void Attend(const AttentionRun<Element>& run);
}
namespace avx2 {
template <typename Element>
void Attend(const AttentionRun<Element>& run);
}
namespace baseline {
template <typename Element>
void Attend(const AttentionRun<Element>& run);
}

template <typename Element>
void Attend(const AttentionRun<Element>& run, InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return avx512::Attend(run);
    case InstructionSet::kAvx2:
      return avx2::Attend(run);
    case InstructionSet::kBaseline:
      return baseline::Attend(run);
  }
}

template void Attend(const AttentionRun<float>& run, InstructionSet set);
template void Attend(const AttentionRun<BFloat16>& run, InstructionSet set);

}  // namespace longshort::models::cpu
