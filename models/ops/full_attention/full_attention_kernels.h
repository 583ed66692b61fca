// Full attention of one head over an image's tokens, with biases by relative position. It equals LibTorch's
// scaled_dot_product_attention up to rounding.
#pragma once

#include <cstdint>

#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models::cpu {

// With biases, tokens are `globals` global ones, then side x side patches, row-major.
struct FullHead {
  int64_t head_width = 0, tokens = 0;
  int64_t globals = 0, side = 0;  // with biases

  HeadRows<const float> queries;  // not scaled
  HeadRows<const float> keys, values;
  // Added to scores; null: none. Between patches: [2 * side - 1][2 * side - 1], by the key's row minus the query's,
  // plus side - 1, then the same of columns. Behind the table are kLanes more floats that may be read.
  const float* patch_bias = nullptr;
  const float* to_patches = nullptr;       // [globals]: from each global token to any patch
  const float* to_globals = nullptr;       // [globals]: from any patch to each global token
  const float* between_globals = nullptr;  // [globals][globals]
};

// Queries whose scores are computed together.
inline constexpr int64_t kFullQueries = 24;

// Size of a call's `scratch`, in floats.
int64_t AttendFullyScratchFloats(const FullHead& head);

// Writes the rows of `attended`, one for each token. REQUIRES: the processor supports `set`.
void AttendFully(const FullHead& head, const HeadRows<float>& attended, float* scratch,
                 InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu
