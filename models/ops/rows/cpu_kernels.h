// What the code for CPUs (NAME_body.h) has in common: the instruction sets that it is compiled for, the choice at run
// time, and rows of a matrix, their elements and their layer normalisation.
#pragma once

#include <cstdint>

namespace longshort::models::cpu {

// Floats that a kernel processes at once. Values of a head are padded to a multiple of it.
inline constexpr int64_t kLanes = 16;

constexpr int64_t PaddedHeadWidth(int64_t head_width) { return (head_width + kLanes - 1) / kLanes * kLanes; }

// From one row of `floats` to the next: kLanes more may be read or written, and an odd number of vectors spreads a
// column over the cache's sets.
constexpr int64_t SpreadStride(int64_t floats) { return ((PaddedHeadWidth(floats) / kLanes + 1) | 1) * kLanes; }

// The code is compiled for each of these, slowest first.
enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

// The fastest set that this processor supports and ATEN_CPU_CAPABILITY (default, avx2 or avx512) allows.
InstructionSet BestInstructionSet();

// Whether the processor has AVX-512 VNNI, and ATEN_CPU_CAPABILITY allows AVX-512.
bool HasInt8DotProducts();

// One head's channels of the rows of a matrix: row i begins at data + i * stride.
template <typename Float>
struct HeadRows {
  Float* data = nullptr;
  int64_t stride = 0;
};

// A value stored as the upper half of a float32.
struct BFloat16 {
  uint16_t bits = 0;
};

// Layer normalisation over a row's `width` numbers, with the biased variance.
struct RowNorm {
  const float* gain = nullptr;  // [width]; null: no norm
  const float* bias = nullptr;
  float epsilon = 0;
};

// Gradients, which are added to.
struct NormGradient {
  float* gain = nullptr;  // null: there is no norm
  float* bias = nullptr;
};

}  // namespace longshort::models::cpu

namespace longshort::models {

// Queries that see the same rows of their document. Ends are exclusive; row 0 is the document's first.
struct WindowSegment {
  int64_t first_query = 0;
  int64_t end_query = 0;
  int64_t first_key = 0;
  int64_t end_key = 0;
};

}  // namespace longshort::models

// For the file that calls NAME_body.h's functions: declares `function` for each instruction set, in its namespace, and
// defines it with the set as a further parameter.
//   LONGSHORT_SELECT(void, Add, (const float* from, float* to), (from, to))
#define LONGSHORT_SELECT(Result, function, parameters, arguments)          \
  LONGSHORT_DECLARE(Result function parameters;)                           \
  Result function(LONGSHORT_LIST parameters, InstructionSet set) {         \
    if (set == InstructionSet::kAvx512) return avx512::function arguments; \
    if (set == InstructionSet::kAvx2) return avx2::function arguments;     \
    return baseline::function arguments;                                   \
  }
// The same for a function that returns the same with each set: without the further parameter.
#define LONGSHORT_SELECT_ANY(Result, function, parameters, arguments) \
  LONGSHORT_DECLARE(Result function parameters;)                      \
  Result function parameters { return baseline::function arguments; }

#define LONGSHORT_LIST(...) __VA_ARGS__
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
