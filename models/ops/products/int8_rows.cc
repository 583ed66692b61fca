#include <immintrin.h>

#include <cstdint>

#include "models/ops/products/product_kernels.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {
namespace {

#define LS_INLINE inline __attribute__((always_inline))
#define LS_UNROLL _Pragma("GCC unroll 16")

// Outputs of a vector, and vectors of a panel.
constexpr int64_t kOutputs = 16, kVectors = kPanelOutputs / kOutputs;
// Rows whose sums fit the registers beside a word of weights.
constexpr int kTileRows = 6;
constexpr float kLargest = 127;

// sums += the products of four unsigned and four signed bytes in each of 16 words. Inline assembly, because GCC
// 12 spills the intrinsic's sums to the stack.
LS_INLINE void AddProducts(const __m512i& unsigned_bytes, const __m512i& signed_bytes, __m512i& sums) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// Adds a group's part to kRows results, or writes it for the first group.
template <int kRows>
LS_INLINE void AddGroup(const Int8Panel& panel, const int32_t* corrections, const Int8Rows& rows, int64_t group,
                        const HeadRows<float>& out) {
  __m512i sums[kRows][kVectors];
  LS_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const __m512i correction = _mm512_loadu_si512(corrections + group * kPanelOutputs + v * kOutputs);
    LS_UNROLL
    for (int i = 0; i < kRows; ++i) sums[i][v] = correction;
  }
  const int64_t first = group * kGroupInputs;
  const int64_t end = first + kGroupInputs < panel.inputs ? first + kGroupInputs : panel.inputs;
  for (int64_t input = first; input < end; input += kWordInputs) {
    __m512i weights[kVectors];
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      weights[v] = _mm512_loadu_si512(panel.numbers + input * kPanelOutputs + v * kOutputs * kWordInputs);
    }
    LS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      int32_t word;
      __builtin_memcpy(&word, rows.numbers + i * rows.groups * kGroupInputs + input, sizeof(word));
      const __m512i four = _mm512_set1_epi32(word);
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) AddProducts(four, weights[v], sums[i][v]);
    }
  }
  LS_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const __m512 of_weights = _mm512_loadu_ps(panel.scales + group * kPanelOutputs + v * kOutputs);
    LS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      float* const to = out.data + i * out.stride + v * kOutputs;
      const __m512 scale = _mm512_mul_ps(of_weights, _mm512_set1_ps(rows.scales[i * rows.groups + group]));
      const __m512 before = group == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(to);
      _mm512_storeu_ps(to, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[i][v]), scale, before));
    }
  }
}

// The results of `count` rows, at most kRows.
template <int kRows>
LS_INLINE void MultiplyTile(int64_t count, const Int8Panel& panel, const int32_t* corrections, const Int8Rows& rows,
                            const HeadRows<float>& out) {
  if constexpr (kRows > 1) {
    if (count < kRows) return MultiplyTile<kRows - 1>(count, panel, corrections, rows, out);
  }
  for (int64_t group = 0; group < rows.groups; ++group) AddGroup<kRows>(panel, corrections, rows, group, out);
}

}  // namespace

void RoundToInt8(const float* row, int64_t inputs, uint8_t* numbers, float* scales) {
  constexpr int64_t kParts = kGroupInputs / kOutputs;
  for (int64_t group = 0; group * kGroupInputs < inputs; ++group) {
    __m512 x[kParts];
    __m512i largest = _mm512_setzero_si512();  // as integers, NaN is above all numbers
    LS_UNROLL
    for (int64_t part = 0; part < kParts; ++part) {
      const int64_t first = group * kGroupInputs + part * kOutputs, left = inputs - first;
      const auto mask = static_cast<__mmask16>(left >= kOutputs ? 0xffff : left <= 0 ? 0 : (1U << left) - 1);
      x[part] = _mm512_maskz_loadu_ps(mask, row + first);
      largest = _mm512_max_epi32(largest, _mm512_castps_si512(_mm512_abs_ps(x[part])));
    }
    const int32_t bits = _mm512_reduce_max_epi32(largest);
    float most;
    __builtin_memcpy(&most, &bits, sizeof(most));
    scales[group] = most / kLargest;
    const __m512 inverse = _mm512_set1_ps(most > 0 ? kLargest / most : 0);
    LS_UNROLL
    for (int64_t part = 0; part < kParts; ++part) {
      const __m128i rounded = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(x[part], inverse)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(numbers + group * kGroupInputs + part * kOutputs),
                       _mm_xor_si128(rounded, _mm_set1_epi8(static_cast<char>(0x80))));
    }
  }
}

void MultiplyInt8Rows(const Int8Panel& panel, const int32_t* corrections, const Int8Rows& rows, int64_t count,
                      const HeadRows<float>& out) {
  for (int64_t row = 0; row < count; row += kTileRows) {
    MultiplyTile<kTileRows>(count - row, panel, corrections,
                            {.numbers = rows.numbers + row * rows.groups * kGroupInputs,
                             .scales = rows.scales + row * rows.groups,
                             .groups = rows.groups},
                            {out.data + row * out.stride, out.stride});
  }
}

}  // namespace longshort::models::cpu
