// config.json of a text classifier (the bidirectional Transformer-LS of Long Range Arena), read strictly.
//
//   {"architecture": "text_classifier", "tokenizer": "bytes_plus_one", "layers": 2, ..., "cls": "last_layer"}
//
// Every field is required except pooled_length and max_document_tokens, none but these is allowed; each stands under
// the name that it has below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/weights/config_fields.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// How documents become ids: "none" (ids only), "bytes_plus_one", "listops_2020", "listops_2021", "pixels" (the grey
// values of an image).
enum class DocumentTokenizerKind { kNone, kBytesPlusOne, kListOps2020, kListOps2021, kPixels };

// As in config.json.
std::string_view DocumentTokenizerName(DocumentTokenizerKind kind);

// Where the row that is classified comes from.
enum class ClsKind {
  kNone,        // "none": the mean of the tokens' rows
  kVocabulary,  // "vocabulary": the token of id vocabulary_size - 1, put in front of the document
  kAllLayers,   // "all_layers": a learned row, carried through all layers
  kLastLayer,   // "last_layer": a learned row that joins the last layer only
};

// Lengths are in tokens. The defaults are Long Range Arena's for documents of bytes.
struct TextClassifierConfig {
  DocumentTokenizerKind tokenizer = DocumentTokenizerKind::kNone;
  int64_t layers = 2;
  int64_t model_width = 64;            // D: a multiple of heads
  int64_t heads = 2;                   // H
  int64_t feed_forward_width = 128;    // of the layers and of the classifying head
  int64_t window_size = 8;             // w: tokens of a segment; 0: no window
  int64_t projection_rank = 32;        // r: landmarks per document and head; 0: none
  int64_t vocabulary_size = 512;       // V: ids are below it; id 0 is masked
  int64_t max_sequence_length = 4096;  // rows of the position table
  ClsKind cls = ClsKind::kLastLayer;
  bool normalized_cls = false;    // whether a learned CLS row enters attention through norm1
  int64_t value_convolution = 0;  // kernel size, odd; 0: none
  bool tied_layers = false;       // one layer's weights in all layers
  int64_t documents = 1;          // that make one item: 1 or 2
  int64_t classes = 2;

  // What a sum of rows is divided by to be the mean (cls "none" only): the length to which training filled the
  // documents up. 0: max_sequence_length.
  int64_t pooled_length = 0;
  // The longest document that is taken. 0: all that the position table, and for a mean pooled_length, allow.
  int64_t max_document_tokens = 0;
  // The size of the image (tokenizer "pixels" only).
  PixelSequenceConfig preprocessing;

  // The two lengths as they apply.
  int64_t PooledLength() const;
  int64_t MaxDocumentTokens() const;
  // Whether the CLS row is a tensor of its own.
  bool HasClsParameter() const { return cls == ClsKind::kAllLayers || cls == ClsKind::kLastLayer; }

  friend bool operator==(const TextClassifierConfig&, const TextClassifierConfig&) = default;
};

// Every field of config.json.
std::vector<FieldDescription> TextClassifierFields();

// Checks every field's range and the rules between fields; `name` (the file) starts the message.
// A config that passes can be calculated with: no product of its fields that the model forms exceeds int64.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit or rule.
absl::Status CheckTextClassifierConfig(const TextClassifierConfig& config, std::string_view name);

// Reads and checks config.json. `name` stands for the file in errors.
// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<TextClassifierConfig> ParseTextClassifierConfig(std::string_view text, const std::string& name);

// The text of config.json; parsing it gives the same config.
std::string ToJson(const TextClassifierConfig& config);

// The tensors that model.safetensors of a text classifier holds: the official names, `seq_classifer` included.
//
// Tensors without elements (mha.dconv_fc of a model without landmarks) are not stored.

// What the names of a layer's tensors start with: "model.transformer_1.", or "model.transformer." for tied layers.
std::string TextLayerPrefix(const TextClassifierConfig& config, int64_t layer);
//
// Every tensor of a model of this configuration, in the order of use: embeddings, layers, classifying head. All are
// trained.
std::vector<TensorShape> TextClassifierTensors(const TextClassifierConfig& config);

}  // namespace longshort::models
