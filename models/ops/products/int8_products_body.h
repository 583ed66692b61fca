// The body of the functions of int8 and bfloat16 panels, compiled once for each instruction set (lanes_body.h).
#pragma once

#include <cstdint>

#include "models/ops/products/product_kernels.h"
#include "models/ops/rows/lanes_body.h"

// NOLINTBEGIN(misc-definitions-in-headers): a body that one file per namespace includes
namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET {
namespace {

#define LS_LAMBDA __attribute__((always_inline))

using UnsignedRegister = uint32_t __attribute__((vector_size(kRegisterFloats * sizeof(uint32_t))));
using Shorts = uint16_t __attribute__((vector_size(kRegisterFloats * sizeof(uint16_t))));

inline constexpr int64_t kPanelLanes = kPanelOutputs / kLanes;
// Bytes that are fetched ahead, from a stream that is read once.
inline constexpr int64_t kFetchAhead = 2048;
// Numbers are widened in the upper byte of a word, 2^24 times as large.
inline constexpr float kUpperByte = 1.0f / (1 << 24);

// The numbers of input kInput of a word's four, times 2^24, for kRegisterFloats outputs.
template <int kInput>
LS_INLINE Register Widen(const UnsignedRegister& words) {
  UnsignedRegister shifted = words << (24 - 8 * kInput);
  if (kInput > 0) shifted &= 0xff000000U;
  IntRegister numbers;
  __builtin_memcpy(&numbers, &shifted, sizeof(numbers));
  return __builtin_convertvector(numbers, Register);
}

LS_INLINE UnsignedRegister LoadWords(const int8_t* from, int64_t part) {
  UnsignedRegister words;
  __builtin_memcpy(&words, from + part * sizeof(words), sizeof(words));
  return words;
}

LS_INLINE int64_t GroupInputs(const Int8Panel& panel, int64_t first) { return Min(panel.inputs - first, kGroupInputs); }

// Adds a group's part to kRows x (kVectors * kLanes) results, or writes it for the first group.
template <int kRows, int kVectors>
LS_INLINE void AddGroup(int64_t inputs, const HeadRows<const float>& rows, const int8_t* numbers, const float* scales,
                        bool is_first, float* out, int64_t out_stride) {
  Lanes sums[kRows][kVectors];
  LS_UNROLL
  for (int i = 0; i < kRows; ++i) {
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[i][v] = Lanes{};
  }
  const auto add = [&]<int kInput>(int64_t k, const UnsignedRegister(&words)[kVectors][kParts]) LS_LAMBDA {
    Lanes columns[kVectors];
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      LS_UNROLL
      for (int64_t p = 0; p < kParts; ++p) columns[v].part[p] = Widen<kInput>(words[v][p]);
    }
    LS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const float factor = rows.data[i * rows.stride + k + kInput];
      LS_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[i][v] += columns[v] * factor;
    }
  };
  for (int64_t k = 0; k < inputs; k += kWordInputs) {
    UnsignedRegister words[kVectors][kParts];
    LS_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const int8_t* const from = numbers + k * kPanelOutputs + v * kLanes * kWordInputs;
      __builtin_prefetch(from + kFetchAhead);
      LS_UNROLL
      for (int64_t p = 0; p < kParts; ++p) words[v][p] = LoadWords(from, p);
    }
    add.template operator()<0>(k, words);
    add.template operator()<1>(k, words);
    add.template operator()<2>(k, words);
    add.template operator()<3>(k, words);
  }
  LS_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    Lanes scale;
    Load(scales + v * kLanes, scale);
    scale = scale * kUpperByte;
    LS_UNROLL
    for (int i = 0; i < kRows; ++i) {
      float* const to = out + i * out_stride + v * kLanes;
      Lanes sum = sums[i][v] * scale;
      if (!is_first) {
        Lanes before;
        Load(to, before);
        sum += before;
      }
      Store(sum, to);
    }
  }
}

// kRows results for a group, in parts whose sums fit the registers.
template <int kRows>
LS_INLINE void AddGroup(const Int8Panel& panel, int64_t first, const HeadRows<const float>& rows,
                        const HeadRows<float>& out) {
  constexpr int64_t kFit = kSumsInRegisters / kRows;
  constexpr int kVectors = kFit >= kPanelLanes ? kPanelLanes : (kFit >= 2 ? 2 : 1);
  const float* const scales = panel.scales + first / kGroupInputs * kPanelOutputs;
  for (int64_t v = 0; v < kPanelLanes; v += kVectors) {
    AddGroup<kRows, kVectors>(GroupInputs(panel, first), {rows.data + first, rows.stride},
                              panel.numbers + first * kPanelOutputs + v * kLanes * kWordInputs, scales + v * kLanes,
                              /*is_first=*/first == 0, out.data + v * kLanes, out.stride);
  }
}

// Calls `use` (first input, first output, words, scales) for all words of a panel; a scale is of the numbers' upper
// bytes.
template <typename Use>
LS_INLINE void ForEachWord(const Int8Panel& panel, const Use& use) {
  for (int64_t first = 0; first < panel.inputs; first += kGroupInputs) {
    Lanes scales[kPanelLanes];
    for (int64_t v = 0; v < kPanelLanes; ++v) {
      Load(panel.scales + first / kGroupInputs * kPanelOutputs + v * kLanes, scales[v]);
      scales[v] = scales[v] * kUpperByte;
    }
    const int64_t end = first + GroupInputs(panel, first);
    for (int64_t input = first; input < end; input += kWordInputs) {
      LS_UNROLL
      for (int64_t v = 0; v < kPanelLanes; ++v) {
        const int8_t* const from = panel.numbers + input * kPanelOutputs + v * kLanes * kWordInputs;
        __builtin_prefetch(from + kFetchAhead);
        LS_UNROLL
        for (int64_t p = 0; p < kParts; ++p)
          use(input, v * kLanes + p * kRegisterFloats, LoadWords(from, p), scales[v].part[p]);
      }
    }
  }
}

LS_INLINE UnsignedRegister Bits(const Register& x) {
  UnsignedRegister bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// The bits of the nearest bfloat16, in the upper half; the lower half is garbage.
LS_INLINE UnsignedRegister Rounded(const Register& x) {
  const UnsignedRegister bits = Bits(x);
  return bits + 0x7fffU + ((bits >> 16) & 1U);
}

// Both rounded to bfloat16, `lower` in the lower half. Halves are rounded up: weights are hardly ever halves.
LS_INLINE UnsignedRegister Pair(const Register& lower, const Register& upper) {
  return ((Bits(lower) + 0x8000U) >> 16) | ((Bits(upper) + 0x8000U) & 0xffff0000U);
}

}  // namespace

void MultiplyInt8(const Int8Panel& panel, const HeadRows<const float>& rows, int64_t count,
                  const HeadRows<float>& out) {
  constexpr int kMost = 4;
  for (int64_t first = 0; first < panel.inputs; first += kGroupInputs) {
    for (int64_t row = 0; row < count; row += kMost) {
      const HeadRows<const float> from = {rows.data + row * rows.stride, rows.stride};
      const HeadRows<float> to = {out.data + row * out.stride, out.stride};
      switch (count - row) {
        case 1:
          AddGroup<1>(panel, first, from, to);
          break;
        case 2:
          AddGroup<2>(panel, first, from, to);
          break;
        case 3:
          AddGroup<3>(panel, first, from, to);
          break;
        default:
          AddGroup<kMost>(panel, first, from, to);
      }
    }
  }
}

void WidenInt8(const Int8Panel& panel, const HeadRows<float>& weights) {
  ForEachWord(panel,
              [&](int64_t input, int64_t output, const UnsignedRegister& words, const Register& scale) LS_LAMBDA {
                const auto store = [&](int64_t i, const Register& numbers) LS_LAMBDA {
                  const Register scaled = numbers * scale;
                  __builtin_memcpy(weights.data + (input + i) * weights.stride + output, &scaled, sizeof(scaled));
                };
                store(0, Widen<0>(words));
                store(1, Widen<1>(words));
                store(2, Widen<2>(words));
                store(3, Widen<3>(words));
              });
}

void WidenPairs(const BFloat16* pairs, int64_t inputs, const HeadRows<float>& weights) {
  for (int64_t input = 0; input < inputs; input += 2) {
    for (int64_t output = 0; output < kPanelOutputs; output += kRegisterFloats) {
      UnsignedRegister pair;
      __builtin_memcpy(&pair, pairs + input * kPanelOutputs + 2 * output, sizeof(pair));
      const UnsignedRegister lower = pair << 16, upper = pair & 0xffff0000U;
      __builtin_memcpy(weights.data + input * weights.stride + output, &lower, sizeof(lower));
      __builtin_memcpy(weights.data + (input + 1) * weights.stride + output, &upper, sizeof(upper));
    }
  }
}

void WidenToPairs(const Int8Panel& panel, BFloat16* pairs) {
  ForEachWord(
      panel, [&](int64_t input, int64_t output, const UnsignedRegister& words, const Register& scale) LS_LAMBDA {
        const auto store = [&](int64_t i, const Register& lower, const Register& upper) LS_LAMBDA {
          const UnsignedRegister pair = Pair(lower * scale, upper * scale);
          __builtin_memcpy(static_cast<void*>(pairs + (input + i) * kPanelOutputs + 2 * output), &pair, sizeof(pair));
        };
        store(0, Widen<0>(words), Widen<1>(words));
        store(2, Widen<2>(words), Widen<3>(words));
      });
}

void RoundToBFloat16(const float* from, int64_t count, BFloat16* to) {
  int64_t i = 0;
  for (; i + kRegisterFloats <= count; i += kRegisterFloats) {
    Register x;
    Load(from + i, x);
    const Shorts rounded = __builtin_convertvector(Rounded(x) >> 16, Shorts);
    __builtin_memcpy(static_cast<void*>(to + i), &rounded, sizeof(rounded));
  }
  for (; i < count; ++i) {
    const Register x = Splat(from[i]);
    to[i].bits = static_cast<uint16_t>(Rounded(x)[0] >> 16);
  }
}

void FinishProduct(const HeadRows<float>& rows, int64_t count, int64_t columns, const Summands& added, bool gelu) {
  if (added.bias == nullptr && !gelu && added.rows.data == nullptr) return;
  const auto add = [](const float* from, Lanes& x) {
    Lanes y;
    Load(from, y);
    x += y;
  };
  const auto finish = [&](const float* bias, const float* row, float* numbers) {
    Lanes x;
    Load(numbers, x);
    if (bias != nullptr) add(bias, x);
    if (gelu) Gelu(x);
    if (row != nullptr) add(row, x);
    Store(x, numbers);
  };
  const auto at = [](const float* from, int64_t column) { return from == nullptr ? nullptr : from + column; };
  // The rest of a row is shorter than a vector.
  const int64_t whole = columns / kLanes * kLanes, left = columns - whole;
  float rest[kLanes] = {}, rest_of_bias[kLanes] = {}, rest_of_row[kLanes] = {};
  const auto copy = [left](float* to, const float* from) {
    if (from != nullptr) __builtin_memcpy(to, from, left * sizeof(float));
  };
  copy(rest_of_bias, at(added.bias, whole));
  for (int64_t i = 0; i < count; ++i) {
    float* const to = rows.data + i * rows.stride;
    const float* const row = at(added.rows.data, i * added.rows.stride);
    for (int64_t c = 0; c < whole; c += kLanes) finish(at(added.bias, c), at(row, c), to + c);
    if (left == 0) continue;
    copy(rest, to + whole);
    copy(rest_of_row, at(row, whole));
    finish(rest_of_bias, rest_of_row, rest);
    copy(to + whole, rest);
  }
}

}  // namespace longshort::models::cpu::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
