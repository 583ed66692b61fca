// A kernel for each instruction of models/gpu/device.h, for the emulator and for the chip.
#pragma once

#include <cstdint>

#include "models/gpu/kernel_call.h"
#include "models/gpu/pages.h"

namespace longshort::models::cuda {

// Two blocks of 64 threads: [128][6]: block, grid, thread, lane, warp, shared memory's address modulo 128.
struct WherePlaces {
  int* places;
};
KernelCall WhereCall(const WherePlaces& arguments);

// A warp: [32][4] of what lane l gets of in[32]: of lane l + 1, of lane l ^ 5, a double of lane 3, votes for in > 8.
struct LaneExchange {
  const float* in;
  float* out;
};
KernelCall ExchangeCall(const LaneExchange& arguments);

// 96 threads turn in[96] around through shared memory, in two steps with a barrier each; the warps turn their parts
// around behind SyncWarp.
struct Reversal {
  const float* in;
  float* out;          // [96]
  float* out_of_warp;  // [96]
};
KernelCall ReverseCall(const Reversal& arguments);

// A warp: in[224 words] goes to out by loads and stores of 1, 2 and 4 words, and by LoadConstant; then in[128 words] by
// CopyAsync, of which lane 1 leaves its 4 out (zeros).
struct WordCopies {
  const uint32_t* in;  // [256]
  uint32_t* out;       // [3][2][128], then [128]
};
KernelCall CopyWordsCall(const WordCopies& arguments);

// A warp loads four matrices [32 rows][8] of 16 bits: [2][32][4], as they are, and transposed.
struct MatrixLoads {
  const uint16_t* in;
  uint32_t* out;
};
KernelCall LoadMatricesCall(const MatrixLoads& arguments);

// d[16][8] = d + a[16][depth] b[8][depth]^T; depth 16 of two-byte elements, 8 of TF32, which float32 is rounded to.
struct MatrixProduct {
  const void* a;
  const void* b;
  float* d;
};
enum class ProductType { kBFloat16, kHalf, kTf32 };
KernelCall MultiplyCall(ProductType type, const MatrixProduct& arguments);

// Of each in[count] and in[count - 1 - i], kNumberFunctions results: [count][kNumberFunctions].
constexpr int kNumberFunctions = 14;
struct NumberFunctions {
  const float* in;
  float* out;
  int count;
};
KernelCall NumbersCall(const NumberFunctions& arguments);

}  // namespace longshort::models::cuda
