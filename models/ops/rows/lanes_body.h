// Arithmetic on kLanes floats at once, for the bodies of kernels (LONGSHORT_INSTRUCTION_SET names the namespace).
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"

#define LS_INLINE inline __attribute__((always_inline))
// Unrolls a short loop with a constant count, so that its numbers stay in registers.
#ifdef __clang__
#define LS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LS_UNROLL _Pragma("GCC unroll 16")
#endif

namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

#if defined(__AVX512F__)
inline constexpr int64_t kRegisterFloats = 16, kRegisterCount = 32;
#elif defined(__AVX2__)
inline constexpr int64_t kRegisterFloats = 8, kRegisterCount = 16;
#else
inline constexpr int64_t kRegisterFloats = 4, kRegisterCount = 16;
#endif
// Registers that hold kLanes floats.
inline constexpr int64_t kParts = kLanes / kRegisterFloats;
// Sums of kLanes floats that fit half of the registers.
inline constexpr int64_t kSumsInRegisters = kRegisterCount / 2 / kParts;

using Register = float __attribute__((vector_size(kRegisterFloats * sizeof(float))));
using IntRegister = int32_t __attribute__((vector_size(kRegisterFloats * sizeof(int32_t))));

// kLanes floats in kParts registers: the compiler keeps a vector that is wider than a register in memory.
struct Lanes {
  Register part[kParts];

  LS_INLINE Lanes& operator+=(const Lanes& other) {
    LS_UNROLL
    for (int64_t p = 0; p < kParts; ++p) part[p] += other.part[p];
    return *this;
  }
};

LS_INLINE int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
LS_INLINE int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

LS_INLINE Register Splat(float value) { return value - Register{}; }
LS_INLINE void Load(const float* from, Register& to) { __builtin_memcpy(&to, from, sizeof(to)); }
LS_INLINE void Load(const float* from, Lanes& to) {
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) Load(from + p * kRegisterFloats, to.part[p]);
}
LS_INLINE void Store(const Lanes& from, float* to) {
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) {
    __builtin_memcpy(to + p * kRegisterFloats, &from.part[p], sizeof(from.part[p]));
  }
}

LS_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
  Lanes product;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) product.part[p] = a.part[p] * b.part[p];
  return product;
}
LS_INLINE Lanes operator*(const Lanes& a, float b) {
  Lanes product;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) product.part[p] = a.part[p] * b;
  return product;
}
LS_INLINE Lanes operator+(const Lanes& a, float b) {
  Lanes sum;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) sum.part[p] = a.part[p] + b;
  return sum;
}
LS_INLINE Lanes operator-(const Lanes& a, float b) {
  Lanes difference;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) difference.part[p] = a.part[p] - b;
  return difference;
}
LS_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
  Lanes difference;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) difference.part[p] = a.part[p] - b.part[p];
  return difference;
}
LS_INLINE Lanes Larger(const Lanes& a, const Lanes& b) {
  Lanes larger;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) larger.part[p] = a.part[p] > b.part[p] ? a.part[p] : b.part[p];
  return larger;
}
LS_INLINE Lanes Smaller(const Lanes& a, float b) {
  Lanes smaller;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) smaller.part[p] = a.part[p] < b ? a.part[p] : Splat(b);
  return smaller;
}

// `x` where begin <= lane < end, elsewhere `otherwise`.
LS_INLINE Lanes Between(int32_t begin, int32_t end, const Lanes& x, float otherwise) {
  Lanes kept;
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) {
    IntRegister lane;
    for (int64_t i = 0; i < kRegisterFloats; ++i) lane[i] = static_cast<int32_t>(p * kRegisterFloats + i);
    kept.part[p] = ((lane >= begin) & (lane < end)) ? x.part[p] : Splat(otherwise);
  }
  return kept;
}

// e^x for x <= 0, to 2 units in the last place; below -87 it is e^-87, which does not change a float32 sum of
// probabilities.
LS_INLINE void Exponential(Register& x) {
  constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number in the low bits
  x = x < -87.0f ? Splat(-87.0f) : x;
  const Register shifted = x * kLog2E + kRound;
  const Register whole = shifted - kRound;
  const Register r = (x - whole * kLn2High) - whole * kLn2Low;
  // Taylor coefficients 1/k!, to the seventh power: |r| <= ln(2)/2.
  Register p = r * (1.0f / 5040) + (1.0f / 720);
  p = p * r + (1.0f / 120);
  p = p * r + (1.0f / 24);
  p = p * r + (1.0f / 6);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const IntRegister exponent = __builtin_convertvector(whole, IntRegister) << 23;
  IntRegister bits;
  __builtin_memcpy(&bits, &p, sizeof(bits));
  bits += exponent;
  __builtin_memcpy(&x, &bits, sizeof(x));
}

// erfc(x / sqrt(2)) for 0 <= x <= 7, as e^r: r is x times a polynomial that was fitted to this range, with the error of
// GELU as its weight.
LS_INLINE Register Tails(const Register& x) {
  Register r = x * 2.7231013177697605e-07f - 5.407468961493578e-06f;
  r = r * x + 4.464675294002518e-05f;
  r = r * x - 0.00017375180323142558f;
  r = r * x - 3.241424565203488e-05f;
  r = r * x + 0.004849940538406372f;
  r = r * x - 0.036372214555740356f;
  r = r * x - 0.31829994916915894f;
  r = r * x - 0.7978855967521667f;
  r = r * x;
  Exponential(r);
  return r;
}

LS_INLINE Register SizeUpTo7(const Register& x) {
  const Register size = x < 0.0f ? -x : x;
  return size > 7.0f ? Splat(7.0f) : size;
}

// x (1 + erf(x / sqrt(2))) / 2, to 4e-8: for x <= 0 it is x erfc(|x| / sqrt(2)) / 2, and for x > 0 it is x minus that.
LS_INLINE void Gelu(Register& x) {
  const Register size = SizeUpTo7(x), half = size * Tails(size) * 0.5f;
  x = x > 0.0f ? x - half : -half;
}
// The same, and its derivative.
LS_INLINE void GeluAndSlope(Register& x, Register& slope) {
  const Register size = SizeUpTo7(x), tail = Tails(size) * 0.5f, half = size * tail;
  Register density = x * x * -0.5f;
  Exponential(density);
  slope = (x > 0.0f ? 1.0f - tail : tail) + x * density * 0.3989422804014327f;  // 1 / sqrt(2 pi)
  x = x > 0.0f ? x - half : -half;
}
LS_INLINE void Gelu(Lanes& x) {
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) Gelu(x.part[p]);
}
inline void GeluRow(int64_t count, const float* from, float* to) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Lanes x;
    Load(from + i, x);
    Gelu(x);
    Store(x, to + i);
  }
}
LS_INLINE void Exponential(Lanes& x) {
  LS_UNROLL
  for (int64_t p = 0; p < kParts; ++p) Exponential(x.part[p]);
}

// Folds lanes 0 .. 2 * kHalf - 1 into the first, by halves. The order does not depend on the register size.
template <int64_t kHalf, typename Fold>
LS_INLINE void FoldLanes(float (&lanes)[kLanes], const Fold& fold) {
  LS_UNROLL
  for (int64_t i = 0; i < kHalf; ++i) lanes[i] = fold(lanes[i], lanes[i + kHalf]);
  if constexpr (kHalf > 1) FoldLanes<kHalf / 2>(lanes, fold);
}
LS_INLINE float Maximum(const Lanes& x) {
  float lanes[kLanes];
  Store(x, lanes);
  FoldLanes<kLanes / 2>(lanes, [](float a, float b) { return a > b ? a : b; });
  return lanes[0];
}
// In registers, in the order of FoldLanes.
LS_INLINE float Sum(const Lanes& x) {
  Lanes folded = x;
  LS_UNROLL
  for (int64_t half = kParts / 2; half > 0; half /= 2) {
    for (int64_t p = 0; p < half; ++p) folded.part[p] += folded.part[p + half];
  }
  Register sum = folded.part[0];
#if defined(__AVX512F__)
  sum += __builtin_shufflevector(sum, sum, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  sum += __builtin_shufflevector(sum, sum, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  sum += __builtin_shufflevector(sum, sum, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
#elif defined(__AVX2__)
  sum += __builtin_shufflevector(sum, sum, 4, 5, 6, 7, 0, 1, 2, 3);
  sum += __builtin_shufflevector(sum, sum, 2, 3, 0, 1, 6, 7, 4, 5);
#else
  sum += __builtin_shufflevector(sum, sum, 2, 3, 0, 1);
#endif
  return sum[0] + sum[1];
}

}  // namespace
}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
