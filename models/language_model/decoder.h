// The weights of a whole language model, as tensors: what is loaded, served and trained.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/language_model/decoder_layer.h"
#include "models/weights/language_model_config.h"

namespace longshort {

struct Decoder {
  LanguageModelConfig config;
  at::Tensor embedding;            // [V, d], float32; also the output map
  Linear output;                   // the same in the precision of the products, and a bias [V]
  at::Tensor inverse_frequencies;  // [d/2], not trained
  std::vector<DecoderLayer> layers;

  // For serving only: brings the matrices that meet tokens into the order of the library's products (Linear::Packed).
  // Takes seconds for a large model: `between` is called before each matrix, and may throw.
  void Pack(const std::function<void()>& between);

  // ids [...] int32 or int64 -> [..., d], scaled by sqrt(d).
  at::Tensor Embed(const at::Tensor& ids) const;
  // hidden [..., d] -> logits [..., V], float32.
  at::Tensor Logits(const at::Tensor& hidden) const;

  // Position vectors before a layer's own map: [W, d], and [((M+L)/C - 1) * R, d].
  at::Tensor WindowPositionTable() const;
  at::Tensor ChunkPositionTable() const;
};

// Builds the decoder from `tensor`, which gives each stored tensor by its name in model.safetensors (float32, of the
// shape that LanguageModelTensors says). Matrices that meet tokens are cast to `product_type`; everything else stays
// float32.
Decoder MakeDecoder(const LanguageModelConfig& config, at::ScalarType product_type,
                    const std::function<at::Tensor(const std::string& name)>& tensor);

}  // namespace longshort
