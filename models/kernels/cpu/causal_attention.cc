#include "models/kernels/cpu/causal_attention.h"

namespace longshort::cpu {
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

namespace {

InstructionSet DetectInstructionSet() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return InstructionSet::kAvx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? InstructionSet::kAvx2
                                                                         : InstructionSet::kBaseline;
}

}  // namespace

InstructionSet BestInstructionSet() {
  static const InstructionSet best = DetectInstructionSet();
  return best;
}

const char* InstructionSetName(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kBaseline:
      break;
  }
  return "baseline";
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

}  // namespace longshort::cpu
