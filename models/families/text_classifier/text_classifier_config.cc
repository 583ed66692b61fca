#include "models/families/text_classifier/text_classifier_config.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

constexpr int64_t kMaxIds = 1 << 22;
constexpr int64_t kMaxClasses = 1 << 20;

constexpr std::array<ConfigField<TextClassifierConfig>, 13> kTextFields = {{
    {"layers", &TextClassifierConfig::layers, "Layers.", 1, 1 << 10},
    {"model_width", &TextClassifierConfig::model_width, "Width of a token; a multiple of heads.", 1, 1 << 14},
    {"heads", &TextClassifierConfig::heads, "Attention heads.", 1, 1 << 10},
    {"feed_forward_width", &TextClassifierConfig::feed_forward_width,
     "Width inside the feed-forward part and of the head `relu`.", 1, 1 << 17},
    {"window_size", &TextClassifierConfig::window_size,
     "w: tokens of a segment; a token sees its segment and half a segment on each side. 0: no window.", 0, 1 << 17},
    {"projection_rank", &TextClassifierConfig::projection_rank, "r: landmarks of a document, for each head; 0: none.",
     0, 1 << 14},
    {"vocabulary_size", &TextClassifierConfig::vocabulary_size,
     "Number of token ids. bytes_plus_one needs at least 257, pixels 256.", 2, kMaxIds},
    {"max_sequence_length", &TextClassifierConfig::max_sequence_length,
     "Rows of the position table, which limit the length of a document in tokens.", 1, 1 << 22},
    {"value_convolution", &TextClassifierConfig::value_convolution,
     "Kernel size of the convolution of values; odd, 0: none.", 0, 1 << 14},
    {"documents", &TextClassifierConfig::documents,
     "Documents per item. With cls first_token, an item has 1 or 2 in any case.", 1, 2},
    {"classes", &TextClassifierConfig::classes,
     "Classes, or numbers of a regression. 0, only with head tanh: an encoder without a head.", 0, kMaxClasses},
    {"normalized_cls", &TextClassifierConfig::normalized_cls,
     "The first layer norm normalises a learned CLS row before attention."},
    {"tied_layers", &TextClassifierConfig::tied_layers, "All layers share one layer's weights."},
}};

constexpr std::string_view kSeparatorId = "separator_id";
constexpr std::array<ConfigField<TextClassifierConfig>, 4> kOptionalTextFields = {{
    {"layer_norm_epsilon", &TextClassifierConfig::layer_norm_epsilon, "Epsilon of all norms. Absent: 1e-5."},
    {"dual_norm", &TextClassifierConfig::dual_norm,
     "Two norms of keys and values (DualLN): one of window tokens, one of CLS and the landmarks. false only with "
     "projection_rank 0. Absent: true."},
    {"padding_id", &TextClassifierConfig::padding_id, "Tokens of this id are masked. Absent: 0.", 0, kMaxIds - 1},
    {kSeparatorId, &TextClassifierConfig::separator_id,
     "Id that replaces the first one of a pair's second document. Only with cls first_token. Absent: 2.", 0,
     kMaxIds - 1},
}};

constexpr std::string_view kLayerNorm = "layer_norm";
constexpr std::string_view kHead = "head";
constexpr std::string_view kProblemType = "problem_type";
constexpr std::string_view kPooledLength = "pooled_length";
constexpr std::string_view kMaxDocumentTokens = "max_document_tokens";
constexpr std::string_view kPreprocessing = "preprocessing";

// In the order of their enumerations.
constexpr std::array<std::string_view, 1> kTextArchitecture = {"text_classifier"};
constexpr std::array<std::string_view, 6> kDocumentTokenizers = {"none",         "bytes_plus_one", "listops_2020",
                                                                 "listops_2021", "pixels",         "byte_level_bpe"};
constexpr std::array<std::string_view, 5> kClsKinds = {"none", "vocabulary", "all_layers", "last_layer", "first_token"};
constexpr std::array<std::string_view, 2> kLayerNormPlaces = {"before", "after"};
constexpr std::array<std::string_view, 2> kHeads = {"relu", "tanh"};
constexpr std::array<std::string_view, 3> kProblemTypes = {"single_label_classification", "multi_label_classification",
                                                           "regression"};

std::vector<FieldDescription> FieldsOf(const TextClassifierConfig& config) {
  std::vector<FieldDescription> fields = TextClassifierFields();
  std::erase_if(fields, [&](const FieldDescription& field) {
    return (field.name == kPooledLength && config.cls != ClsKind::kNone) ||
           (field.name == kPreprocessing && config.tokenizer != DocumentTokenizerKind::kPixels) ||
           (field.name == kSeparatorId && config.cls != ClsKind::kFirstToken);
  });
  return fields;
}

// Checks the number of ids of a tokenizer that needs no vocabulary.
absl::Status CheckVocabulary(const TextClassifierConfig& config, std::string_view name) {
  int64_t ids = 0;
  if (config.tokenizer == DocumentTokenizerKind::kBytesPlusOne) ids = 257;
  if (config.tokenizer == DocumentTokenizerKind::kPixels) ids = 256;
  if (config.vocabulary_size >= ids) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s: vocabulary_size is %d, the tokenizer '%s' has %d ids", name,
                                                    config.vocabulary_size,
                                                    kDocumentTokenizers[static_cast<size_t>(config.tokenizer)], ids));
}

// The maximum length that the position table and the mean allow.
int64_t LongestDocument(const TextClassifierConfig& config) {
  const int64_t rows = config.max_sequence_length - (config.cls == ClsKind::kVocabulary ? 1 : 0);
  return config.cls == ClsKind::kNone ? std::min(rows, config.PooledLength()) : rows;
}

absl::Status CheckLengths(const TextClassifierConfig& config, std::string_view name) {
  if (config.cls == ClsKind::kVocabulary && config.max_sequence_length < 2) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: max_sequence_length is %d, the CLS token and a document need at least 2", name,
                        config.max_sequence_length));
  }
  LS_RETURN_IF_ERROR(CheckRange(name, kPooledLength, config.PooledLength(), 1, config.max_sequence_length));
  LS_RETURN_IF_ERROR(CheckRange(name, kMaxDocumentTokens, config.MaxDocumentTokens(), 1, LongestDocument(config)));
  if (config.tokenizer == DocumentTokenizerKind::kPixels && config.documents != 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: documents is %d, the tokenizer 'pixels' makes 1", name, config.documents));
  }
  const int64_t pixels = config.preprocessing.height * config.preprocessing.width;
  if (config.tokenizer == DocumentTokenizerKind::kPixels && pixels > config.MaxDocumentTokens()) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: preprocessing makes %d x %d = %d tokens, the model takes %d",
                                                      name, config.preprocessing.height, config.preprocessing.width,
                                                      pixels, config.MaxDocumentTokens()));
  }
  return absl::OkStatus();
}

// The rules between the fields that Long Range Arena's models do not have.
absl::Status CheckEncoder(const TextClassifierConfig& config, std::string_view name) {
  const auto wrong = [name](std::string_view reason) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": ", std::string(reason)));
  };
  const bool first_token = config.cls == ClsKind::kFirstToken;
  const DocumentTokenizerKind tokenizer = config.tokenizer;
  const bool adds_first_token =
      tokenizer == DocumentTokenizerKind::kNone || tokenizer == DocumentTokenizerKind::kByteLevelBpe;
  if (first_token && !adds_first_token) {
    return wrong(absl::StrFormat("cls is 'first_token', but the tokenizer '%s' adds no first token",
                                 DocumentTokenizerName(tokenizer)));
  }
  if (config.layer_norm == LayerNormPlace::kAfter && !first_token)
    return wrong("layer_norm is 'after'; that needs cls 'first_token'");
  if (!config.dual_norm && config.projection_rank > 0) {
    return wrong(absl::StrFormat("dual_norm is false, but projection_rank is %d: landmarks need the two norms",
                                 config.projection_rank));
  }
  LS_RETURN_IF_ERROR(CheckRange(name, "classes", config.classes, config.head == HeadKind::kTanh ? 0 : 1, kMaxClasses));
  LS_RETURN_IF_ERROR(CheckRange(name, "padding_id", config.padding_id, 0, config.vocabulary_size - 1));
  if (config.padding_id != 0 && !adds_first_token) {
    return wrong(absl::StrFormat("padding_id is %d; it must be 0 for the tokenizer '%s'", config.padding_id,
                                 DocumentTokenizerName(tokenizer)));
  }
  if (!first_token) return absl::OkStatus();
  LS_RETURN_IF_ERROR(CheckRange(name, kSeparatorId, config.separator_id, 0, config.vocabulary_size - 1));
  if (config.separator_id == config.padding_id)
    return wrong(absl::StrFormat("separator_id is %d, the padding_id, which is masked", config.separator_id));
  return absl::OkStatus();
}

// Reads an optional choice. An absent one keeps its value.
template <typename Enum, size_t size>
absl::Status ReadChoice(const JsonView& fields, std::string_view field,
                        const std::array<std::string_view, size>& choices, Enum& value) {
  if (!fields.Has(field)) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const size_t choice, fields.Choice(field, choices));
  value = static_cast<Enum>(choice);
  return absl::OkStatus();
}

// Writes a choice that is not the default, the first one.
template <typename Enum, size_t size>
void WriteChoice(std::string_view field, const std::array<std::string_view, size>& choices, Enum value,
                 nlohmann::ordered_json& document) {
  if (value != Enum{}) document[std::string(field)] = choices[static_cast<size_t>(value)];
}

// Reads an optional length, which is 0 if it is absent.
absl::Status ReadLength(const JsonView& fields, std::string_view field, int64_t max, int64_t& length) {
  if (!fields.Has(field)) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(length, fields.Integer(field));
  if (length < 1 || length > max) return fields.Wrong(field, absl::StrFormat("in 1..%d", max));
  return absl::OkStatus();
}

void AddTextLayer(const TextClassifierConfig& config, TensorList layer) {
  const int64_t width = config.model_width;
  layer.AddAffine("norm1", {width});
  for (const char* const projection : {"W_q", "W_k", "W_v", "W_o"})
    layer.AddAffine(absl::StrCat("mha.", projection), {width, width});
  if (config.dual_norm) {
    layer.AddAffine("mha.dual_ln_s", {width});
    layer.AddAffine("mha.dual_ln_l", {width});
  }
  if (config.projection_rank > 0) layer.AddAffine("mha.dconv_fc", {config.heads * config.projection_rank, width});
  if (config.value_convolution > 0) layer.Add("mha.conv.weight", {config.heads, 1, config.value_convolution, 1});
  layer.AddAffine("norm2", {width});
  layer.AddAffine("mlpblock.0", {config.feed_forward_width, width});
  layer.AddAffine("mlpblock.3", {width, config.feed_forward_width});
}

}  // namespace

std::string_view DocumentTokenizerName(DocumentTokenizerKind kind) {
  return kDocumentTokenizers[static_cast<size_t>(kind)];
}

int64_t TextClassifierConfig::PooledLength() const { return pooled_length == 0 ? max_sequence_length : pooled_length; }

int64_t TextClassifierConfig::MaxDocumentTokens() const {
  return max_document_tokens == 0 ? LongestDocument(*this) : max_document_tokens;
}

absl::Status CheckTextClassifierConfig(const TextClassifierConfig& config, std::string_view name) {
  LS_RETURN_IF_ERROR(CheckRanges(kTextFields, config, name));
  LS_RETURN_IF_ERROR(CheckRanges(kOptionalTextFields, config, name));
  if (config.model_width % config.heads != 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: model_width is %d; it must be a multiple of heads, %d", name,
                                                      config.model_width, config.heads));
  }
  if (config.value_convolution != 0 && config.value_convolution % 2 == 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: value_convolution is %d; it must be odd, or 0 for none", name, config.value_convolution));
  }
  LS_RETURN_IF_ERROR(CheckVocabulary(config, name));
  LS_RETURN_IF_ERROR(CheckEncoder(config, name));
  return CheckLengths(config, name);
}

std::vector<FieldDescription> TextClassifierFields() {
  std::vector<FieldDescription> fields = {DescribeChoice("architecture", kTextArchitecture, "The family.")};
  AddDescriptions(kTextFields, fields);
  fields.push_back(DescribeChoice("tokenizer", kDocumentTokenizers,
                                  "Tokenizer of documents. none: the model accepts ids only. The ListOps tokenizers "
                                  "read their symbols from vocabulary.txt, byte_level_bpe reads tokenizer.json."));
  fields.push_back(
      DescribeChoice("cls", kClsKinds,
                     "The row that is classified. none: the mean of all rows. vocabulary: the token of the "
                     "last id, before the document. all_layers, last_layer: a learned row, in all "
                     "layers or in the last one. first_token: the document's first token, `<s>`."));
  fields.push_back(
      DescribeChoice(kLayerNorm, kLayerNormPlaces,
                     "Place of the norms: before each part of a layer, or after it (only with cls first_token). "
                     "Absent: before."));
  AddDescriptions(kOptionalTextFields, fields);
  fields.push_back(
      DescribeChoice(kHead, kHeads,
                     "Layers from the classified row to the classes. relu: feed_forward_width, ReLU, classes. tanh: "
                     "model_width, tanh, classes. Absent: relu."));
  fields.push_back(DescribeChoice(kProblemType, kProblemTypes,
                                  "Meaning of the logits: a softmax, a sigmoid of each, or numbers. Absent: "
                                  "single_label_classification."));
  const std::string length = "1 to max_sequence_length";
  fields.push_back(
      {kMaxDocumentTokens, length,
       "Maximum length of a document, or of a joined pair. Absent: the maximum that the other fields allow."});
  fields.push_back(
      {kPooledLength, length, "Divisor of the sum of the rows. Only with cls none. Absent: max_sequence_length."});
  fields.push_back({kPreprocessing, "an object", "Only with tokenizer pixels: see Preprocessing of pixel sequences."});
  return fields;
}

absl::StatusOr<TextClassifierConfig> ParseTextClassifierConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.Choice("architecture", kTextArchitecture).status());
  TextClassifierConfig config;
  LS_ASSIGN_OR_RETURN(const size_t tokenizer, fields.Choice("tokenizer", kDocumentTokenizers));
  LS_ASSIGN_OR_RETURN(const size_t cls, fields.Choice("cls", kClsKinds));
  config.tokenizer = static_cast<DocumentTokenizerKind>(tokenizer);
  config.cls = static_cast<ClsKind>(cls);
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(FieldsOf(config))));

  LS_RETURN_IF_ERROR(ReadFields(fields, kTextFields, config));
  LS_RETURN_IF_ERROR(ReadFields(fields, kOptionalTextFields, config, Presence::kOptional));
  LS_RETURN_IF_ERROR(ReadChoice(fields, kLayerNorm, kLayerNormPlaces, config.layer_norm));
  LS_RETURN_IF_ERROR(ReadChoice(fields, kHead, kHeads, config.head));
  LS_RETURN_IF_ERROR(ReadChoice(fields, kProblemType, kProblemTypes, config.problem_type));
  LS_RETURN_IF_ERROR(ReadLength(fields, kPooledLength, config.max_sequence_length, config.pooled_length));
  LS_RETURN_IF_ERROR(ReadLength(fields, kMaxDocumentTokens, config.max_sequence_length, config.max_document_tokens));
  if (config.tokenizer == DocumentTokenizerKind::kPixels) {
    LS_ASSIGN_OR_RETURN(config.preprocessing, ReadPixelSequence(fields));
  }
  LS_RETURN_IF_ERROR(CheckTextClassifierConfig(config, name));
  return config;
}

std::string ToJson(const TextClassifierConfig& config) {
  nlohmann::ordered_json document;
  document["architecture"] = kTextArchitecture.front();
  document["tokenizer"] = DocumentTokenizerName(config.tokenizer);
  WriteFields(kTextFields, config, document);
  document["cls"] = kClsKinds[static_cast<size_t>(config.cls)];
  WriteChoice(kLayerNorm, kLayerNormPlaces, config.layer_norm, document);
  WriteOptionalFields(kOptionalTextFields, config, document);
  WriteChoice(kHead, kHeads, config.head, document);
  WriteChoice(kProblemType, kProblemTypes, config.problem_type, document);
  if (config.cls == ClsKind::kNone && config.pooled_length != 0)
    document[std::string(kPooledLength)] = config.pooled_length;
  if (config.max_document_tokens != 0) document[std::string(kMaxDocumentTokens)] = config.max_document_tokens;
  if (config.tokenizer == DocumentTokenizerKind::kPixels) document["preprocessing"] = ToJson(config.preprocessing);
  return document.dump(2) + "\n";
}

std::string TextLayerPrefix(const TextClassifierConfig& config, int64_t layer) {
  return config.tied_layers ? "model.transformer." : absl::StrFormat("model.transformer_%d.", layer);
}

std::vector<TensorShape> TextClassifierTensors(const TextClassifierConfig& config) {
  const int64_t width = config.model_width;
  std::vector<TensorShape> tensors;
  TensorList model("", tensors);
  model.Add("model.embeddings.word_embeddings.weight", {config.vocabulary_size, width});
  model.Add("model.embeddings.position_embeddings.weight", {config.max_sequence_length, width});
  if (config.layer_norm == LayerNormPlace::kAfter) model.AddAffine("model.embeddings.norm", {width});
  if (config.HasClsParameter()) model.Add("model.cls_embed", {1, 1, width});
  for (int64_t layer = 0; layer < (config.tied_layers ? 1 : config.layers); ++layer)
    AddTextLayer(config, TensorList(TextLayerPrefix(config, layer), tensors));
  if (config.layer_norm == LayerNormPlace::kBefore) model.AddAffine("model.norm", {width});
  if (config.classes > 0) {
    model.AddAffine("seq_classifer.mlpblock.0", {config.HeadWidth(), config.HeadInputs()});
    model.AddAffine("seq_classifer.mlpblock.2", {config.classes, config.HeadWidth()});
  }
  return tensors;
}

}  // namespace longshort::models
