// Full attention of images' tokens on the CPU, without gradients: scaled_dot_product_attention by a kernel.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models {

// Biases of scores. Undefined tensors: none.
struct FullBias {
  at::Tensor patches;          // [heads, (2 * side - 1)^2], by relative position, in the order of BiasForKernel
  at::Tensor of_globals;       // [2, heads, g]: for scores global -> patch and patch -> global
  at::Tensor between_globals;  // [heads, g, g]
};

// The biases of pairs of patches, for the kernel.
//   table  [(2 * side - 1)^2, heads], as GridBiasIndex reads it
at::Tensor BiasForKernel(const at::Tensor& table);

// Whether AttendFully can compute this: float32 on the CPU, and no gradient is asked for.
bool CanAttendFully(const at::Tensor& query_key_value);

// Attention of all tokens to all tokens of their image.
//   query_key_value  [images, tokens, 3d]; with biases, tokens are g global ones and then a square grid, row-major
//   returns          [images, tokens, d]
// REQUIRES: CanAttendFully.
at::Tensor AttendFully(const at::Tensor& query_key_value, int64_t heads, const FullBias& bias,
                       cpu::InstructionSet set = cpu::BestInstructionSet());

}  // namespace longshort::models
