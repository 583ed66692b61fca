// Arithmetic on kLanes floats at once, for the bodies of kernels (LONGSHORT_INSTRUCTION_SET names the namespace; a body
// undefines LS_INLINE at its end).
#pragma once

#include <cstdint>

#include "models/kernels/cpu/instruction_set.h"

namespace longshort::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using IntLanes = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

#define LS_INLINE inline __attribute__((always_inline))

LS_INLINE void Load(const float* from, Lanes& to) { __builtin_memcpy(&to, from, sizeof(to)); }
LS_INLINE void Store(const Lanes& from, float* to) { __builtin_memcpy(to, &from, sizeof(from)); }

// e^x for x <= 0, to 2 units in the last place; below -87 it is e^-87, which no float32 sum of probabilities notices.
LS_INLINE void Exponential(Lanes& x) {
  constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number in the low bits
  x = x < -87.0f ? Lanes{} - 87.0f : x;
  const Lanes shifted = x * kLog2E + kRound;
  const Lanes whole = shifted - kRound;
  const Lanes r = (x - whole * kLn2High) - whole * kLn2Low;
  // Taylor coefficients 1/k!, to the seventh power: |r| <= ln(2)/2.
  Lanes p = r * (1.0f / 5040) + (1.0f / 720);
  p = p * r + (1.0f / 120);
  p = p * r + (1.0f / 24);
  p = p * r + (1.0f / 6);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const IntLanes exponent = __builtin_convertvector(whole, IntLanes) << 23;
  IntLanes bits;
  __builtin_memcpy(&bits, &p, sizeof(bits));
  bits += exponent;
  __builtin_memcpy(&x, &bits, sizeof(x));
}

LS_INLINE float Maximum(const Lanes& x) {
  float result = x[0];
  for (int64_t i = 1; i < kLanes; ++i) result = x[i] > result ? x[i] : result;
  return result;
}
LS_INLINE float Sum(const Lanes& x) {
  float result = x[0];
  for (int64_t i = 1; i < kLanes; ++i) result += x[i];
  return result;
}

}  // namespace
}  // namespace longshort::cpu::LONGSHORT_INSTRUCTION_SET
