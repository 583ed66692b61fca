// Runs the model over whole segments of a batch of streams. Differentiable: the trainer runs it, and it is the simple
// reference of the served step (transformer_ls.h).
#pragma once

#include <vector>

#include "ATen/core/Tensor.h"
#include "models/families/language_model/decoder.h"

namespace longshort::models {

// The memory of a batch of streams between calls, for one layer. Gradients do not pass through it.
struct LayerMemory {
  at::Tensor window_keys, window_values;  // [batch, W-1, d], after DualLN
  at::Tensor memory_keys, memory_values;  // [batch, M/C*R, d], compressed ("mix, then project"), oldest first
};

// One LayerMemory per layer.
using StreamMemory = std::vector<LayerMemory>;

// The memory before a stream's first token: M zero rows in every layer.
StreamMemory ZeroMemory(const Decoder& decoder, int64_t batch);

// Reads `ids` [batch, T] int64, T a multiple of L, from the start of a segment. Replaces `memory` by the memory after
// them.
//   returns  logits [batch, T, V]
at::Tensor ForwardSegments(const Decoder& decoder, const at::Tensor& ids, StreamMemory& memory);

}  // namespace longshort::models
