// The weights of a whole text classifier, as tensors: what is loaded, served and trained.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/classifiers/text_layer.h"
#include "models/layers/linear.h"
#include "models/layers/named_tensors.h"
#include "models/weights/text_classifier_config.h"

namespace longshort::models {

struct TextNetwork {
  TextClassifierConfig config;
  at::Tensor word_embeddings;      // [V, D]
  at::Tensor position_embeddings;  // [max_sequence_length, D]
  at::Tensor cls;                  // [1, D]; undefined where CLS is no parameter
  std::vector<TextLayer> layers;   // tied layers share their tensors
  LayerNorm norm;
  Linear head_in, head_out;

  // Documents as a batch: config.documents for each item, items one after the other; ids in [0, V), 0 being masked, not
  // all 0; at most MaxDocumentTokens() of them up to the last that is not 0.
  PackedDocuments Pack(absl::Span<const absl::Span<const int32_t>> documents) const;
  // Logits of the items, [items, classes], float32. `attention` attends in these documents.
  at::Tensor Logits(const DocumentTokens& documents, ItemAttention& attention) const;
  // The same by CpuItemAttention: differentiable.
  at::Tensor Logits(std::shared_ptr<const PackedDocuments> packed) const;
  // That Logits does: of every matrix product and convolution, and none of them on a masked token.
  int64_t MultiplyAdds(const PackedDocuments& packed) const;

  void MoveBy(TensorMove& move);

 private:
  // One row for each document: [documents, D].
  at::Tensor Encode(const DocumentTokens& documents, ItemAttention& attention) const;
  bool HasCls(size_t layer) const;
};

// Builds the network from `tensor`, which gives each stored tensor by its name in model.safetensors (float32, of the
// shape that TextClassifierTensors says).
TextNetwork MakeTextNetwork(const TextClassifierConfig& config, const TensorSource& tensor);

}  // namespace longshort::models
