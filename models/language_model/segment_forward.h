// The model over whole segments of a batch of streams, differentiable: what the trainer runs, and the plain reference
// of the served step (transformer_ls.h).
#pragma once

#include <vector>

#include "ATen/core/Tensor.h"
#include "models/language_model/decoder.h"

namespace longshort::models {

// What a batch of streams remembers between calls, for one layer; gradients end here.
struct LayerMemory {
  at::Tensor window_keys, window_values;  // [batch, W-1, d], after DualLN
  at::Tensor memory_keys, memory_values;  // [batch, M/C*R, d], compressed ("mix, then project"), oldest first
};

// One LayerMemory per layer.
using StreamMemory = std::vector<LayerMemory>;

// The memory of streams that have not begun: M zero rows in every layer.
StreamMemory ZeroMemory(const Decoder& decoder, int64_t batch);

// Reads `ids` [batch, T] int64, T a multiple of L, from the start of a segment; replaces `memory` by what comes after.
//   returns  logits [batch, T, V]
at::Tensor ForwardSegments(const Decoder& decoder, const at::Tensor& ids, StreamMemory& memory);

}  // namespace longshort::models
