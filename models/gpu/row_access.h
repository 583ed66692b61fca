// Reads and writes rows of activations whose element type is known only at run time. For kernels only.
#pragma once

#include <cstdint>

#include "models/gpu/device.h"
#include "models/gpu/pages.h"

namespace longshort::models::cuda {

LS_DEVICE float RowElement(ElementType type, const void* rows, int64_t index) {
  return type == ElementType::kFloat ? static_cast<const float*>(rows)[index]
                                     : ToFloat(static_cast<const BFloat16*>(rows)[index]);
}
LS_DEVICE void SetRowElement(ElementType type, void* rows, int64_t index, float value) {
  if (type == ElementType::kFloat) {
    static_cast<float*>(rows)[index] = value;
  } else {
    Convert(value, static_cast<BFloat16*>(rows)[index]);
  }
}

// Adjacent elements that a thread reads and writes at once: 4, or 1 if they are not aligned.
template <int n>
struct SomeFloats {
  float value[n];
};
template <int n>
LS_DEVICE SomeFloats<n> LoadRow(ElementType type, const void* rows, int64_t index) {
  SomeFloats<n> floats;
  if constexpr (n == 1) {
    floats.value[0] = RowElement(type, rows, index);
  } else if (type == ElementType::kFloat) {
    const Words<4> words = Load<4>(static_cast<const float*>(rows) + index);
    LS_UNROLL
    for (int i = 0; i < 4; ++i) floats.value[i] = FloatOf(words.word[i]);
  } else {
    const Words<2> words = Load<2>(static_cast<const BFloat16*>(rows) + index);
    LS_UNROLL
    for (int i = 0; i < 4; ++i) {
      floats.value[i] = FloatOf(i % 2 == 0 ? words.word[i / 2] << 16 : words.word[i / 2] & 0xffff0000u);
    }
  }
  return floats;
}
template <int n>
LS_DEVICE void StoreRow(ElementType type, void* rows, int64_t index, const SomeFloats<n>& floats) {
  if constexpr (n == 1) {
    SetRowElement(type, rows, index, floats.value[0]);
  } else if (type == ElementType::kFloat) {
    Words<4> words;
    LS_UNROLL
    for (int i = 0; i < 4; ++i) words.word[i] = BitsOf(floats.value[i]);
    Store<4>(static_cast<float*>(rows) + index, words);
  } else {
    const Words<2> words = {
        {PackBFloat16(floats.value[0], floats.value[1]), PackBFloat16(floats.value[2], floats.value[3])}};
    Store<2>(static_cast<BFloat16*>(rows) + index, words);
  }
}

// Returns the sum over the lanes in every lane, in a fixed order.
LS_DEVICE float WarpSum(float value) {
  for (int with = 16; with > 0; with /= 2) value = Add(value, ShuffleXor(value, with));
  return value;
}

// A warp normalises a row of `width` floats in shared memory; lane l has n elements from each n * (l + 32 i) on:
//   y = (x - mean) / sqrt(variance + epsilon) * gain + bias, with the biased variance
template <int n>
LS_DEVICE void NormalizeRow(float* row, int width, float epsilon, const float* gain, const float* bias) {
  float sum = 0;
  for (int c = n * Lane(); c < width; c += n * kWarpThreads) {
    LS_UNROLL
    for (int i = 0; i < n; ++i) sum = Add(sum, row[c + i]);
  }
  const float mean = Multiply(WarpSum(sum), Reciprocal(static_cast<float>(width)));
  float squares = 0;
  for (int c = n * Lane(); c < width; c += n * kWarpThreads) {
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      const float difference = Add(row[c + i], -mean);
      squares = MultiplyAdd(difference, difference, squares);
    }
  }
  const float variance = Multiply(WarpSum(squares), Reciprocal(static_cast<float>(width)));
  const float scale = Reciprocal(SquareRoot(Add(variance, epsilon)));
  for (int c = n * Lane(); c < width; c += n * kWarpThreads) {
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      row[c + i] = MultiplyAdd(Multiply(Add(row[c + i], -mean), scale), gain[c + i], bias[c + i]);
    }
  }
}

}  // namespace longshort::models::cuda
