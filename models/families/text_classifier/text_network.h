// The network of a text classifier: its weights as tensors, and its forward pass, for serving and training.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/text_classifier/text_layer.h"
#include "models/load_options.h"
#include "models/ops/layers/linear.h"
#include "models/tokenizer/tokenizer.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

struct TextNetwork {
  TextClassifierConfig config;
  at::Tensor word_embeddings;      // [V, D]
  at::Tensor position_embeddings;  // [max_sequence_length, D]
  LayerNorm embedding_norm;        // undefined: none
  at::Tensor cls;                  // [1, D]; undefined if CLS is not a parameter
  std::vector<TextLayer> layers;   // tied layers share their tensors
  LayerNorm norm;                  // undefined: none
  Linear head_in, head_out;        // undefined without classes

  // Packs a batch: config.NetworkDocuments() documents for each item, item by item. Ids are in [0, V). A document has
  // an id other than padding_id; the last such id is among the first MaxDocumentTokens() ids.
  PackedDocuments Pack(absl::Span<const absl::Span<const int32_t>> documents) const;
  // The same for GPUs.
  PackedIds PackForGpu(absl::Span<const absl::Span<const int32_t>> documents) const;
  WindowRule Windows() const { return {.size = config.window_size, .see_nothing = config.projection_rank > 0}; }
  // A pair as one document. REQUIRES: config.JoinsPairs(), and `second` has an id other than padding_id.
  std::vector<int32_t> Joined(absl::Span<const int32_t> first, absl::Span<const int32_t> second) const;

  // Returns one row for each item, or for each document if `output` has no logits: float32. `attention` attends in
  // these documents. REQUIRES: there are classes, or the output has no logits.
  at::Tensor Run(ClassifierOutput output, const DocumentTokens& documents, ItemAttention& attention) const;
  // The same with CpuItemAttention. Differentiable. `dropout` is that of a step of training, in the places of the
  // official code for Long Range Arena; null: none.
  at::Tensor Run(ClassifierOutput output, std::shared_ptr<const PackedDocuments> packed,
                 Dropout* dropout = nullptr) const;
  at::Tensor Logits(std::shared_ptr<const PackedDocuments> packed, Dropout* dropout = nullptr) const {
    return Run(ClassifierOutput::kLogits, std::move(packed), dropout);
  }
  // The multiply-adds of all matrix products and convolutions in Run. Masked tokens cause none.
  template <typename Packed>
  int64_t MultiplyAdds(ClassifierOutput output, const Packed& packed) const {
    return MultiplyAddsOf(output, CountsOf(packed, config.value_convolution));
  }

  void MoveBy(TensorMove& move);

 private:
  TokenRule Tokens() const {
    return {.padding_id = config.padding_id, .first_apart = config.cls == ClsKind::kFirstToken};
  }
  int64_t MultiplyAddsOf(ClassifierOutput output, const DocumentCounts& batch) const;
  HiddenRows Embed(const DocumentTokens& documents, ItemAttention& attention) const;
  // The last layer's rows, normalised. `cls_only`: if there is a CLS row, its rows only.
  HiddenRows Encode(const DocumentTokens& documents, ItemAttention& attention, bool cls_only) const;
  // The last layer's rows, not normalised, in two ways: the reference, and for serving (RunFused).
  HiddenRows LayerByLayer(HiddenRows hidden, int64_t documents, ItemAttention& attention, bool cls_only) const;
  HiddenRows Fused(const HiddenRows& embedded, const PackedDocuments& packed, bool cls_only) const;
  // What the head reads: one row for each document, [documents, D].
  at::Tensor Features(const DocumentTokens& documents, ItemAttention& attention) const;
  // [documents, D] float32.
  at::Tensor MeanOfTokens(const DocumentTokens& documents, ItemAttention& attention) const;
  // rows [documents, D] -> [items, classes].
  at::Tensor Head(const at::Tensor& rows) const;
  bool HasCls(size_t layer) const;
};

// Builds the network from `tensor`, which returns each stored tensor by its name in model.safetensors (float32, with
// its shape in TextClassifierTensors).
TextNetwork MakeTextNetwork(const TextClassifierConfig& config, const TensorSource& tensor);

// Loads a text classifier for serving.
// Errors: those of ParseTextClassifierConfig, CheckTensors and LoadServedClassifier; INTERNAL if LibTorch fails.
absl::StatusOr<ClassifierWeights> LoadTextClassifier(const ModelDirectory& directory, const LoadOptions& options);

// The tokenizer of a text classifier's directory; null if it is "none" or "pixels" in config.json.
// Errors: INVALID_ARGUMENT if the tokenizer's file is missing or broken, or if another tokenizer's file exists.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadDocumentTokenizer(const ModelDirectory& directory);
// The file that a tokenizer reads: vocabulary.txt, tokenizer.json, or "" for none.
std::string_view TokenizerFile(DocumentTokenizerKind tokenizer);
// Makes the tokenizer from the content of its file. `name` is the file's name in errors.
absl::StatusOr<std::unique_ptr<TextEncoder>> MakeDocumentTokenizer(const TextClassifierConfig& config,
                                                                   std::string_view content, const std::string& name);

}  // namespace longshort::models
