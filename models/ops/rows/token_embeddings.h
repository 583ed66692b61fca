// Embeddings of tokens and their positions, on GPUs.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/device/pages.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

// output[i] = table[ids[i]] + position_table[positions[i]].
struct EmbedTokens {
  ElementType element;         // of both tables and the output
  const void* table;           // [vocabulary, width]
  const int32_t* ids;          // [count]
  const void* position_table;  // [positions, width]
  const int64_t* positions;    // [count]
  int64_t count;
  int width;
  Rows output;
};
KernelCall EmbedTokensCall(const EmbedTokens& arguments);

}  // namespace longshort::models::cuda
