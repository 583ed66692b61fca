// Names of instruction sets, for messages.
#pragma once

#include "models/kernels/instruction_set.h"

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

}  // namespace longshort::models::cpu
