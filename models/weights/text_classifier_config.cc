#include "models/weights/text_classifier_config.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/config_fields.h"

namespace longshort::models {
namespace {

constexpr std::array<ConfigField<TextClassifierConfig>, 13> kTextFields = {{
    {"layers", &TextClassifierConfig::layers, "Layers.", 1, 1 << 10},
    {"model_width", &TextClassifierConfig::model_width, "Width of a token; a multiple of heads.", 1, 1 << 14},
    {"heads", &TextClassifierConfig::heads, "Attention heads.", 1, 1 << 10},
    {"feed_forward_width", &TextClassifierConfig::feed_forward_width,
     "Width inside the feed-forward part and of the classification head.", 1, 1 << 17},
    {"window_size", &TextClassifierConfig::window_size,
     "w: tokens of a segment; a token sees its segment and half a segment on each side. 0: no window.", 0, 1 << 14},
    {"projection_rank", &TextClassifierConfig::projection_rank, "r: landmarks of a document, for each head; 0: none.",
     0, 1 << 14},
    {"vocabulary_size", &TextClassifierConfig::vocabulary_size,
     "Number of token ids. Id 0 is masked. bytes_plus_one needs at least 257, pixels 256.", 2, 1 << 22},
    {"max_sequence_length", &TextClassifierConfig::max_sequence_length,
     "Rows of the position table, which limit the length of a document in tokens.", 1, 1 << 22},
    {"value_convolution", &TextClassifierConfig::value_convolution,
     "Kernel size of the convolution of values; odd, 0: none.", 0, 1 << 14},
    {"documents", &TextClassifierConfig::documents, "Documents per item.", 1, 2},
    {"classes", &TextClassifierConfig::classes, "Classes.", 1, 1 << 20},
    {"normalized_cls", &TextClassifierConfig::normalized_cls,
     "The first layer norm normalises a learned CLS row before attention."},
    {"tied_layers", &TextClassifierConfig::tied_layers, "All layers share one layer's weights."},
}};

constexpr std::string_view kPooledLength = "pooled_length";
constexpr std::string_view kMaxDocumentTokens = "max_document_tokens";
constexpr std::string_view kPreprocessing = "preprocessing";

// In the order of their enumerations.
constexpr std::array<std::string_view, 1> kTextArchitecture = {"text_classifier"};
constexpr std::array<std::string_view, 6> kDocumentTokenizers = {"none",         "bytes_plus_one", "listops_2020",
                                                                 "listops_2021", "pixels",         "byte_level_bpe"};
constexpr std::array<std::string_view, 4> kClsKinds = {"none", "vocabulary", "all_layers", "last_layer"};

std::vector<FieldDescription> FieldsOf(const TextClassifierConfig& config) {
  std::vector<FieldDescription> fields = TextClassifierFields();
  std::erase_if(fields, [&](const FieldDescription& field) {
    return (field.name == kPooledLength && config.cls != ClsKind::kNone) ||
           (field.name == kPreprocessing && config.tokenizer != DocumentTokenizerKind::kPixels);
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

// Reads an optional length, which is 0 if it is absent.
absl::Status ReadLength(const JsonFields& fields, std::string_view field, int64_t max, int64_t& length) {
  if (!fields.Has(field)) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(length, fields.Integer(field));
  if (length < 1 || length > max) return fields.OutOfRange(field, absl::StrFormat("in 1..%d", max));
  return absl::OkStatus();
}

void AddTextLayer(const TextClassifierConfig& config, TensorList layer) {
  const int64_t width = config.model_width;
  layer.AddAffine("norm1", {width});
  for (const char* const projection : {"W_q", "W_k", "W_v", "W_o"})
    layer.AddAffine(absl::StrCat("mha.", projection), {width, width});
  layer.AddAffine("mha.dual_ln_s", {width});
  layer.AddAffine("mha.dual_ln_l", {width});
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
  if (config.model_width % config.heads != 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: model_width is %d; it must be a multiple of heads, %d", name,
                                                      config.model_width, config.heads));
  }
  if (config.value_convolution != 0 && config.value_convolution % 2 == 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: value_convolution is %d; it must be odd, or 0 for none", name, config.value_convolution));
  }
  LS_RETURN_IF_ERROR(CheckVocabulary(config, name));
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
                     "layers or in the last one."));
  const std::string length = "1 to max_sequence_length";
  fields.push_back(
      {kMaxDocumentTokens, length, "Maximum length of a document. Absent: the maximum that the other fields allow."});
  fields.push_back(
      {kPooledLength, length, "Divisor of the sum of the rows. Only with cls none. Absent: max_sequence_length."});
  fields.push_back({kPreprocessing, "an object", "Only with tokenizer pixels: see Preprocessing of pixel sequences."});
  return fields;
}

absl::StatusOr<TextClassifierConfig> ParseTextClassifierConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.Choice("architecture", kTextArchitecture).status());
  TextClassifierConfig config;
  LS_ASSIGN_OR_RETURN(const size_t tokenizer, fields.Choice("tokenizer", kDocumentTokenizers));
  LS_ASSIGN_OR_RETURN(const size_t cls, fields.Choice("cls", kClsKinds));
  config.tokenizer = static_cast<DocumentTokenizerKind>(tokenizer);
  config.cls = static_cast<ClsKind>(cls);
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(FieldsOf(config))));

  LS_RETURN_IF_ERROR(ReadFields(fields, kTextFields, config));
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
  if (config.HasClsParameter()) model.Add("model.cls_embed", {1, 1, width});
  for (int64_t layer = 0; layer < (config.tied_layers ? 1 : config.layers); ++layer)
    AddTextLayer(config, TensorList(TextLayerPrefix(config, layer), tensors));
  model.AddAffine("model.norm", {width});
  // The head's input for two documents: their rows, the product and the difference.
  model.AddAffine("seq_classifer.mlpblock.0", {config.feed_forward_width, config.documents == 2 ? 4 * width : width});
  model.AddAffine("seq_classifer.mlpblock.2", {config.classes, config.feed_forward_width});
  return tensors;
}

}  // namespace longshort::models
