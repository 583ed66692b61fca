#include "models/ops/rows/cpu_kernels.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace longshort::models::cpu {
namespace {

InstructionSet DetectInstructionSet() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return InstructionSet::kAvx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? InstructionSet::kAvx2
                                                                         : InstructionSet::kBaseline;
}

// What the environment allows, by LibTorch's variable: one mask counts for its kernels and for these.
InstructionSet AllowedInstructionSet() {
  const char* value = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string_view mask = value == nullptr ? "" : value;
  if (mask == "default") return InstructionSet::kBaseline;
  return mask == "avx2" ? InstructionSet::kAvx2 : InstructionSet::kAvx512;
}

}  // namespace

InstructionSet BestInstructionSet() {
  static const InstructionSet best = std::min(DetectInstructionSet(), AllowedInstructionSet());
  return best;
}

bool HasInt8DotProducts() {
  return BestInstructionSet() == InstructionSet::kAvx512 && __builtin_cpu_supports("avx512vnni");
}

}  // namespace longshort::models::cpu
