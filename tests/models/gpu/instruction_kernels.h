// A kernel for each instruction of models/device/device.h, for the emulator and for GPUs.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"

namespace longshort::models::cuda {

// Two blocks of 64 threads: [128][6]: block, grid, thread, lane, warp, shared memory's address modulo 128.
struct WherePlaces {
  int* places;
};
KernelCall WhereCall(const WherePlaces& arguments);

// A warp: [32][3] values that lane l receives of in[32]: from lane l + 1, from lane l ^ 5, and a double from lane 3.
struct LaneExchange {
  const float* in;
  float* out;
};
KernelCall ExchangeCall(const LaneExchange& arguments);

// 96 threads reverse in[96] through shared memory, in two steps with a barrier each. The warps reverse their parts
// after SyncWarp.
struct Reversal {
  const float* in;
  float* out;          // [96]
  float* out_of_warp;  // [96]
};
KernelCall ReverseCall(const Reversal& arguments);

// A warp copies in[224 words] to out with loads and stores of 1, 2 and 4 words, and with LoadConstant. It then copies
// in[128 words] with CopyAsync, of which lane 1 skips its 4 words (zeros).
struct WordCopies {
  const uint32_t* in;  // [256]
  uint32_t* out;       // [3][2][128], then [128]
};
KernelCall CopyWordsCall(const WordCopies& arguments);

// A warp loads four matrices [32 rows][8] of 16 bits: [32][4], transposed.
struct MatrixLoads {
  const uint16_t* in;
  uint32_t* out;
};
KernelCall LoadMatricesCall(const MatrixLoads& arguments);

// d[16][8] = d + a[16][depth] b[8][depth]^T; depth 16 of two-byte elements, 8 of float32 rounded to TF32.
struct MatrixProduct {
  const void* a;
  const void* b;
  float* d;
};
enum class ProductType { kBFloat16, kTf32 };
KernelCall MultiplyCall(ProductType type, const MatrixProduct& arguments);

// kNumberFunctions results for each pair in[i] and in[count - 1 - i]: [count][kNumberFunctions].
constexpr int kNumberFunctions = 12;
struct NumberFunctions {
  const float* in;
  float* out;
  int count;
};
KernelCall NumbersCall(const NumberFunctions& arguments);

}  // namespace longshort::models::cuda
