// How a kernel's NAME.cc calls the code that is compiled for the chosen instruction set.
#pragma once

#include "models/ops/rows/instruction_set.h"

// Declares the functions for each instruction set, in its namespace.
#define LONGSHORT_DECLARE(...) \
  namespace avx512 {           \
  __VA_ARGS__                  \
  }                            \
  namespace avx2 {             \
  __VA_ARGS__                  \
  }                            \
  namespace baseline {         \
  __VA_ARGS__                  \
  }

// Returns what `function` of the set's namespace returns.
#define LONGSHORT_CALL(set, function, ...)    \
  switch (set) {                              \
    case InstructionSet::kAvx512:             \
      return avx512::function(__VA_ARGS__);   \
    case InstructionSet::kAvx2:               \
      return avx2::function(__VA_ARGS__);     \
    case InstructionSet::kBaseline:           \
      return baseline::function(__VA_ARGS__); \
  }
