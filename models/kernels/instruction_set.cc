#include "models/kernels/instruction_set.h"

namespace longshort::models::cpu {
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

}  // namespace longshort::models::cpu
