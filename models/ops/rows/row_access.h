// Reads and writes rows of activations whose element type is known only at run time. For kernels only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/device/device.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

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

LS_DEVICE float Activated(RowActivation activation, float x) {
  if (activation == RowActivation::kNone) return x;
  if (activation == RowActivation::kRelu) return Larger(x, 0.0f);
  constexpr float kSquareRootOfHalf = 0.70710678118654752f;
  return Multiply(Multiply(x, 0.5f), Add(1.0f, Erf(Multiply(x, kSquareRootOfHalf))));
}

// Returns the sum over the lanes in every lane, in a fixed order.
LS_DEVICE float WarpSum(float value) {
  for (int with = 16; with > 0; with /= 2) value = Add(value, ShuffleXor(value, with));
  return value;
}

// A thread block normalises a row of `width` floats; thread t has n elements from each n * (t + threads * i) on:
//   y = (x - mean) / sqrt(variance + epsilon) * gain + bias, with the biased variance
// load(c) returns n elements of x from element c on, and store(c, floats) receives those of y; it may overwrite x.
//   shared  NormSharedBytes: [3][width] float32, x, gain and bias, of which each thread accesses its own elements;
//           [2][warps], sums of warps
constexpr size_t NormSharedBytes(int width, int threads) { return (3 * width + threads / 16) * sizeof(float); }
template <int n, int threads, typename LoadSome, typename StoreSome>
LS_DEVICE void NormalizeRow(float* shared, int width, const NormWeights& norm, float epsilon, const LoadSome& load,
                            const StoreSome& store) {
  constexpr int kWarps = threads / kWarpThreads;
  float* const gains = shared + width;
  float* const biases = gains + width;
  float* const sums = biases + width;
  // Returns a thread's sum over the block, in a fixed order.
  const auto block_sum = [](float mine, float* sums_of_warps) {
    const float sum = WarpSum(mine);
    if (Lane() == 0) sums_of_warps[Warp()] = sum;
    SyncBlock();
    float all = sums_of_warps[0];
    LS_UNROLL
    for (int warp = 1; warp < kWarps; ++warp) all = Add(all, sums_of_warps[warp]);
    return all;
  };
  const float share = Reciprocal(static_cast<float>(width));

  float sum = 0;
  for (int c = n * Thread(); c < width; c += n * threads) {
    // The weights, too, because loads that are issued together take the time of one.
    const SomeFloats<n> row = load(c), gain = LoadRow<n>(ElementType::kFloat, norm.gain, c),
                        bias = LoadRow<n>(ElementType::kFloat, norm.bias, c);
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      shared[c + i] = row.value[i];
      gains[c + i] = gain.value[i];
      biases[c + i] = bias.value[i];
      sum = Add(sum, row.value[i]);
    }
  }
  const float mean = Multiply(block_sum(sum, sums), share);
  float squares = 0;
  for (int c = n * Thread(); c < width; c += n * threads) {
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      const float difference = Add(shared[c + i], -mean);
      squares = MultiplyAdd(difference, difference, squares);
    }
  }
  const float variance = Multiply(block_sum(squares, sums + kWarps), share);
  const float scale = Reciprocal(SquareRoot(Add(variance, epsilon)));
  for (int c = n * Thread(); c < width; c += n * threads) {
    SomeFloats<n> normalized;
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      normalized.value[i] = MultiplyAdd(Multiply(Add(shared[c + i], -mean), scale), gains[c + i], biases[c + i]);
    }
    store(c, normalized);
  }
}

}  // namespace longshort::models::cuda
