#include "models/families/language_model/language_model_config.h"

#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/weights/config_fields.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

constexpr std::array<ConfigField<LanguageModelConfig>, 14> kLanguageModelFields = {{
    {"layers", &LanguageModelConfig::layers, "Layers.", 1, 1 << 10},
    {"model_width", &LanguageModelConfig::model_width, "Width d of a token; even, a multiple of heads.", 2, 1 << 14},
    {"heads", &LanguageModelConfig::heads, "Attention heads.", 1, 1 << 10},
    {"feed_forward_width", &LanguageModelConfig::feed_forward_width, "Width inside the feed-forward part.", 1, 1 << 17},
    {"chunk_size", &LanguageModelConfig::chunk_size, "C: tokens of a chunk, which the dynamic projection compresses.",
     1, 1 << 14},
    {"chunk_rank", &LanguageModelConfig::chunk_rank, "R: vectors to which a chunk is compressed, for each head.", 1,
     1 << 8},
    {"window_length", &LanguageModelConfig::window_length,
     "W: a token sees itself and the W-1 tokens before it uncompressed.", 1, 1 << 17},
    {"memory_length", &LanguageModelConfig::memory_length,
     "M: tokens before the segment that a token sees compressed; a multiple of chunk_size, at least window_length.", 1,
     1 << 22},
    {"segment_length", &LanguageModelConfig::segment_length,
     "L: tokens of a segment; a multiple of chunk_size. The official evaluation uses 256.", 1, 1 << 22},
    {"vocabulary_size", &LanguageModelConfig::vocabulary_size, "V: number of token ids.", 1, 1 << 22},
    {"window_position_clamp", &LanguageModelConfig::window_position_clamp,
     "Longer distances in the window use the position of this one; 0 or -1: no clamp.", -1, (int64_t{1} << 31) - 1},
    {"chunk_position_clamp", &LanguageModelConfig::chunk_position_clamp,
     "Longer distances of compressed vectors use the position of this one; 0 or -1: no clamp.", -1,
     (int64_t{1} << 31) - 1},
    {"pre_layer_norm", &LanguageModelConfig::pre_layer_norm,
     "Layer norms are before attention and feed-forward part, or (false) after them."},
    {"projection_bias", &LanguageModelConfig::projection_bias,
     "The query, key, value and output projections have biases."},
}};

constexpr int64_t kMaxPositionTableElements = int64_t{1} << 30;

// In the order of their enumerations.
constexpr std::array<std::string_view, 1> kLanguageModelArchitecture = {"language_model"};
constexpr std::array<std::string_view, 2> kActivations = {"gelu", "relu"};
constexpr std::array<std::string_view, 3> kLanguageModelTokenizers = {"none", "fairseq_bytes", "fairseq_characters"};

absl::Status CheckMultiple(std::string_view name, std::string_view field, int64_t value, std::string_view unit_field,
                           int64_t unit) {
  if (value % unit == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %s is %d; it must be a multiple of %s, %d", name, field, value, unit_field, unit));
}

void AddDecoderLayer(const LanguageModelConfig& config, TensorList layer) {
  const int64_t d = config.model_width;
  layer.AddAffine("norm1", {d});
  layer.Add("attn.r_r_bias", {config.heads, d / config.heads});
  layer.Add("attn.r_w_bias", {config.heads, d / config.heads});
  layer.AddAffine("attn.dconv_1", {config.heads * config.chunk_rank, d});
  layer.AddAffine("attn.r_net", {d, d}, /*bias=*/false);
  layer.AddAffine("attn.r_net_chunk", {d, d});
  layer.AddAffine("attn.proj_query", {d, d}, config.projection_bias);
  layer.AddAffine("attn.proj_key", {d, d}, config.projection_bias);
  layer.AddAffine("attn.proj_val", {d, d}, config.projection_bias);
  layer.AddAffine("attn.proj_out", {d, d}, config.projection_bias);
  layer.AddAffine("attn.dual_ln_dproj", {d});
  layer.AddAffine("attn.dual_ln_win", {d});
  layer.AddAffine("norm2", {d});
  layer.AddAffine("ff.fc1", {config.feed_forward_width, d});
  layer.AddAffine("ff.fc2", {d, config.feed_forward_width});
}

}  // namespace

int64_t LanguageModelConfig::PositionTableElements() const {
  const int64_t vectors = ((memory_length + segment_length) / chunk_size - 1) * chunk_rank;
  return layers * (window_length + vectors) * model_width;
}

absl::Status CheckLanguageModelConfig(const LanguageModelConfig& config, std::string_view name) {
  LS_RETURN_IF_ERROR(CheckRanges(kLanguageModelFields, config, name));
  LS_RETURN_IF_ERROR(CheckMultiple(name, "model_width", config.model_width, "2 (sines and cosines)", 2));
  LS_RETURN_IF_ERROR(CheckMultiple(name, "model_width", config.model_width, "heads", config.heads));
  LS_RETURN_IF_ERROR(CheckMultiple(name, "memory_length", config.memory_length, "chunk_size", config.chunk_size));
  LS_RETURN_IF_ERROR(CheckMultiple(name, "segment_length", config.segment_length, "chunk_size", config.chunk_size));
  if (config.memory_length < config.window_length) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: memory_length is %d; it must be at least window_length, %d",
                                                      name, config.memory_length, config.window_length));
  }
  if (config.PositionTableElements() > kMaxPositionTableElements) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: layers * (window_length + ((memory_length + segment_length) / chunk_size - 1) * "
                        "chunk_rank) * model_width is %d, the limit is %d",
                        name, config.PositionTableElements(), kMaxPositionTableElements));
  }
  return absl::OkStatus();
}

std::vector<FieldDescription> LanguageModelFields() {
  std::vector<FieldDescription> fields = {DescribeChoice("architecture", kLanguageModelArchitecture, "The family.")};
  AddDescriptions(kLanguageModelFields, fields);
  fields.push_back(
      DescribeChoice("activation", kActivations, "Activation of the feed-forward part; gelu is exact (erf)."));
  fields.push_back(DescribeChoice("tokenizer", kLanguageModelTokenizers,
                                  "Meaning of the symbols in vocabulary.txt. none: the model reads and writes ids."));
  return fields;
}

absl::StatusOr<LanguageModelConfig> ParseLanguageModelConfig(std::string_view text, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(text, name));
  LS_RETURN_IF_ERROR(fields.Choice("architecture", kLanguageModelArchitecture).status());
  LS_RETURN_IF_ERROR(fields.RefuseUnknown(NamesOf(LanguageModelFields())));

  LanguageModelConfig config;
  LS_RETURN_IF_ERROR(ReadFields(fields, kLanguageModelFields, config));
  LS_ASSIGN_OR_RETURN(const size_t activation, fields.Choice("activation", kActivations));
  LS_ASSIGN_OR_RETURN(const size_t tokenizer, fields.Choice("tokenizer", kLanguageModelTokenizers));
  config.activation = static_cast<Activation>(activation);
  config.tokenizer = static_cast<TokenizerKind>(tokenizer);

  LS_RETURN_IF_ERROR(CheckLanguageModelConfig(config, name));
  if (config.window_position_clamp == -1) config.window_position_clamp = 0;
  if (config.chunk_position_clamp == -1) config.chunk_position_clamp = 0;
  return config;
}

std::string ToJson(const LanguageModelConfig& config) {
  nlohmann::ordered_json document;
  document["architecture"] = kLanguageModelArchitecture.front();
  WriteFields(kLanguageModelFields, config, document);
  document["activation"] = kActivations[static_cast<size_t>(config.activation)];
  document["tokenizer"] = kLanguageModelTokenizers[static_cast<size_t>(config.tokenizer)];
  return document.dump(2) + "\n";
}

std::vector<TensorShape> LanguageModelTensors(const LanguageModelConfig& config) {
  std::vector<TensorShape> tensors = {
      {"in_emb.weight", {config.vocabulary_size, config.model_width}},
      {"out_emb.bias", {config.vocabulary_size}},
      {"pos_emb.inv_freq", {config.model_width / 2}, /*is_trained=*/false},
  };
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    AddDecoderLayer(config, TensorList(absl::StrCat("layers.", layer, "."), tensors));
  }
  return tensors;
}

}  // namespace longshort::models
