// The instruction sets of this processor, and their names for messages.
#pragma once

#include <vector>

#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

// "baseline", "avx2" or "avx512".
inline const char* InstructionSetName(InstructionSet set) {
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

// The sets that this processor supports, slowest first.
inline std::vector<InstructionSet> InstructionSetsHere() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : {InstructionSet::kBaseline, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (set <= BestInstructionSet()) sets.push_back(set);
  }
  return sets;
}

}  // namespace longshort::models::cpu
