// The row-wise halves of a layer for training: what is before attention, and what is behind it, with their
// gradients. They equal LibTorch's operations (models/families/text_classifier/text_layer.h) up to rounding.
//
// A block of rows passes through all steps of a half while it is in the cache. The forward pass keeps what the gradient
// would have to multiply again; norms and GELU are computed again.
//
// Matrices are row-major, [rows][width]. Widths are multiples of kLanes.
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

// y = W x + b, as the forward pass and the gradient read it.
struct TrainedMap {
  int64_t outputs = 0, inputs = 0;
  const float* weight = nullptr;      // [outputs][inputs]
  const float* transposed = nullptr;  // [inputs][outputs]; not needed by gradients
  const float* bias = nullptr;        // [outputs]
};

// Gradients of weights, which are added to.
struct MapGradient {
  float* weight = nullptr;  // [outputs][inputs]
  float* bias = nullptr;    // [outputs]
};

// norm, one map to queries, keys, values and logits of the projection, and DualLN of keys and values.
struct BeforeAttention {
  int64_t width = 0;    // D
  int64_t logits = 0;   // of a row; any number
  RowNorm norm;         // gain null: none
  TrainedMap map;       // D -> 3 D + PaddedHeadWidth(logits)
  RowNorm window_norm;  // gain null: none
};
struct BeforeAttentionRows {
  int64_t rows = 0;
  const float* input = nullptr;                                  // [rows][D]
  float *queries = nullptr, *keys = nullptr, *values = nullptr;  // [rows][D]
  float* logits = nullptr;                                       // [rows][logits]
  float* raw = nullptr;                                          // [rows][2 D]: keys and values before window_norm
  float* normed = nullptr;                                       // [rows][D]: norm(input); null: not kept
};
struct BeforeAttentionGradient {
  const float *queries = nullptr, *keys = nullptr, *values = nullptr, *logits = nullptr;  // as in BeforeAttentionRows
  const float *raw = nullptr, *normed = nullptr;                                          // null: zero
  float* input = nullptr;                                                                 // written
  NormGradient norm, window_norm;
  MapGradient map;
};

// sum = input + output(attended); n = norm(sum); the result is (normed_residual ? n : sum) + out(gelu(in(n))).
struct AfterAttention {
  TrainedMap output, in, out;
  RowNorm norm;
  bool normed_residual = false;
};
struct AfterAttentionRows {
  int64_t rows = 0;
  const float *input = nullptr, *attended = nullptr;  // [rows][D]
  float* sum = nullptr;                               // [rows][D]
  float* inner = nullptr;                             // [rows][F]: before GELU
  float* result = nullptr;                            // [rows][D]
};
struct AfterAttentionGradient {
  const float* result = nullptr;                // [rows][D]
  float *input = nullptr, *attended = nullptr;  // written
  NormGradient norm;
  MapGradient output, in, out;
};

int64_t BeforeAttentionScratchFloats(const BeforeAttention& half);
int64_t AfterAttentionScratchFloats(const AfterAttention& half);

void RunBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& rows, float* scratch,
                        InstructionSet set = BestInstructionSet());
void DifferentiateBeforeAttention(const BeforeAttention& half, const BeforeAttentionRows& rows,
                                  const BeforeAttentionGradient& gradient, float* scratch,
                                  InstructionSet set = BestInstructionSet());
void RunAfterAttention(const AfterAttention& half, const AfterAttentionRows& rows, float* scratch,
                       InstructionSet set = BestInstructionSet());
void DifferentiateAfterAttention(const AfterAttention& half, const AfterAttentionRows& rows,
                                 const AfterAttentionGradient& gradient, float* scratch,
                                 InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
