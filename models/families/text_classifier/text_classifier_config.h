// The config.json of a text classifier (the bidirectional Transformer-LS), parsed strictly.
//
//   {"architecture": "text_classifier", "tokenizer": "bytes_plus_one", "layers": 2, ..., "cls": "last_layer"}
//
// The fields of Long Range Arena's models are required, except pooled_length and max_document_tokens. Those that only
// other models need (docs/models/long_document_encoder.md) are optional. No others are allowed. Their names in the file
// are those below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/families/family.h"
#include "models/weights/config_fields.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// The tokenizer of documents: "none" (ids only), "bytes_plus_one", "listops_2020", "listops_2021", "pixels" (the grey
// values of an image), "byte_level_bpe" (RoBERTa's, from tokenizer.json).
enum class DocumentTokenizerKind { kNone, kBytesPlusOne, kListOps2020, kListOps2021, kPixels, kByteLevelBpe };

// The name in config.json.
std::string_view DocumentTokenizerName(DocumentTokenizerKind kind);

// The row that is classified.
enum class ClsKind {
  kNone,        // "none": the mean of the tokens' rows
  kVocabulary,  // "vocabulary": the token with id vocabulary_size - 1, before the document's
  kAllLayers,   // "all_layers": a learned row in all layers
  kLastLayer,   // "last_layer": a learned row in the last layer only
  kFirstToken,  // "first_token": the document's first token, which also attends to the keys of all others
};

// Where a layer's norms are.
enum class LayerNormPlace {
  kBefore,  // "before": before attention and the feed-forward part, and one behind the last layer
  kAfter,   // "after": behind the sums of both, and one behind the embeddings
};

// The maps from the classified row to the logits.
enum class HeadKind {
  kRelu,  // "relu": in, ReLU, out, with feed_forward_width in between
  kTanh,  // "tanh": dense, tanh, out, with model_width in between
};

// Lengths are in tokens. The defaults are Long Range Arena's for documents of bytes.
struct TextClassifierConfig {
  DocumentTokenizerKind tokenizer = DocumentTokenizerKind::kNone;
  int64_t layers = 2;
  int64_t model_width = 64;            // D: a multiple of heads
  int64_t heads = 2;                   // H
  int64_t feed_forward_width = 128;    // of the layers and of the classification head
  int64_t window_size = 8;             // w: tokens of a segment; 0: no window
  int64_t projection_rank = 32;        // r: landmarks per document and head; 0: none
  int64_t vocabulary_size = 512;       // V: number of ids
  int64_t max_sequence_length = 4096;  // rows of the position table
  ClsKind cls = ClsKind::kLastLayer;
  bool normalized_cls = false;    // norm1 normalises a learned CLS row before attention
  int64_t value_convolution = 0;  // kernel size, odd; 0: none
  bool tied_layers = false;       // all layers share one layer's weights
  int64_t documents = 1;          // documents per item: 1 or 2; with cls "first_token", those of training
  int64_t classes = 2;            // 0 (only with head "tanh"): no head

  LayerNormPlace layer_norm = LayerNormPlace::kBefore;
  double layer_norm_epsilon = 1e-5;
  bool dual_norm = true;     // DualLN of keys and values; false (only without landmarks): none
  int64_t padding_id = 0;    // tokens of this id are masked
  int64_t separator_id = 2;  // replaces the first id of a pair's second document (only with cls "first_token")
  HeadKind head = HeadKind::kRelu;
  ProblemType problem_type = ProblemType::kSingleLabel;

  // Divisor of the sum of rows in the mean (only with cls "none"): the length to which training padded the documents.
  // 0: max_sequence_length.
  int64_t pooled_length = 0;
  // Maximum length of a document, or of a joined pair. 0: the maximum that the position table and, for a mean,
  // pooled_length allow.
  int64_t max_document_tokens = 0;
  // The size of the image (only with tokenizer "pixels").
  PixelSequenceConfig preprocessing;

  // The effective values of the two lengths.
  int64_t PooledLength() const;
  int64_t MaxDocumentTokens() const;
  // Whether the CLS row is a separate tensor.
  bool HasClsParameter() const { return cls == ClsKind::kAllLayers || cls == ClsKind::kLastLayer; }
  // Whether the documents of a pair become one. Then an item has 1 or 2 documents, whatever `documents` is.
  bool JoinsPairs() const { return cls == ClsKind::kFirstToken; }
  int64_t MinDocuments() const { return JoinsPairs() ? 1 : documents; }
  int64_t MaxDocuments() const { return JoinsPairs() ? 2 : documents; }
  // Documents that the network reads for an item.
  int64_t NetworkDocuments() const { return JoinsPairs() ? 1 : documents; }
  // Width of the head's input: for two documents that are not joined their rows, the product and the difference.
  int64_t HeadInputs() const { return documents == 2 && !JoinsPairs() ? 4 * model_width : model_width; }
  // Width between the two maps of the head.
  int64_t HeadWidth() const { return head == HeadKind::kTanh ? model_width : feed_forward_width; }

  friend bool operator==(const TextClassifierConfig&, const TextClassifierConfig&) = default;
};

// All fields of config.json.
std::vector<FieldDescription> TextClassifierFields();

// Checks the ranges of all fields, and the rules between fields. `name` (the file) starts the message.
// For a valid config, the products of fields that the model computes do not overflow int64.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit or rule.
absl::Status CheckTextClassifierConfig(const TextClassifierConfig& config, std::string_view name);

// Parses and checks config.json. `name` is the file's name in errors.
// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<TextClassifierConfig> ParseTextClassifierConfig(std::string_view text, const std::string& name);

// The text of config.json; parsing it gives the same config.
std::string ToJson(const TextClassifierConfig& config);

// What the names of a layer's tensors start with: "model.transformer_1.", or "model.transformer." for tied layers.
std::string TextLayerPrefix(const TextClassifierConfig& config, int64_t layer);

// The tensors that model.safetensors of a text classifier holds, in the order of use: embeddings, layers, classifying
// head. They have the official names, `seq_classifer` included, and all are trained. Tensors without elements
// (mha.dconv_fc of a model without landmarks) are not stored.
std::vector<TensorShape> TextClassifierTensors(const TextClassifierConfig& config);

ModelDescription Describe(const TextClassifierConfig& config);

}  // namespace longshort::models
