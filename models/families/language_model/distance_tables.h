// Position terms of every layer and head, laid out for the attention kernel (DistanceTable).
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/families/language_model/decoder.h"
#include "models/ops/causal_attention/causal_attention_kernels.h"

namespace longshort::models {

template <typename Element>
class DistanceTables final {
 public:
  // Computes the positions of all layers. Their weights are not needed afterwards.
  explicit DistanceTables(const Decoder& decoder);

  cpu::DistanceTable<Element> Window(int64_t layer, int64_t head) const { return View(window_[layer], head); }
  cpu::DistanceTable<Element> Chunk(int64_t layer, int64_t head) const { return View(chunk_[layer], head); }

 private:
  static cpu::DistanceTable<Element> View(const at::Tensor& tables, int64_t head);

  std::vector<at::Tensor> window_, chunk_;  // of each layer: [heads, even width (/ 2), 64 + count + 64 (, 2)]
};

}  // namespace longshort::models
