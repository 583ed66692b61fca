// config.json of a language model: the paper's hyperparameters, read strictly.
//
//   {"architecture": "language_model", "layers": 12, "model_width": 512, ..., "tokenizer": "fairseq_bytes"}
//
// Every field is required, none but these is allowed; each stands under the name that it has here and in
// LanguageModelShape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/weights/config_fields.h"
#include "models/weights/tensors.h"

namespace longshort::models {

enum class Activation { kGelu, kRelu };  // "gelu" (exact, by erf), "relu"
enum class TokenizerKind {
  kNone,
  kFairseqBytes,
  kFairseqCharacters
};  // "none": ids only; "fairseq_bytes"; "fairseq_characters"

struct LanguageModelConfig : LanguageModelShape {
  // Distances above the clamp share the position of the clamp: tokens in the window, vectors among the compressed. 0:
  // no clamp (config.json may also say -1, as the official configurations do).
  int64_t window_position_clamp = 0;
  int64_t chunk_position_clamp = 0;

  bool pre_layer_norm = true;    // layer norms before attention and feed-forward, or (false) after
  bool projection_bias = false;  // biases on the query, key, value and output projections
  Activation activation = Activation::kGelu;
  TokenizerKind tokenizer = TokenizerKind::kNone;

  // Numbers in the position tables of all layers: layers * (W + ((M+L)/C - 1)*R) * d.
  int64_t PositionTableElements() const;

  friend bool operator==(const LanguageModelConfig&, const LanguageModelConfig&) = default;
};

// Every field of config.json.
std::vector<FieldDescription> LanguageModelFields();

// Checks every field's range and the rules between fields; `name` (the file) starts the message.
// A config that passes can be calculated with: no product of its fields that the model forms exceeds int64, and the
// position tables stay below 2^30 elements. Errors: INVALID_ARGUMENT naming the field, its value and the limit or rule.
absl::Status CheckLanguageModelConfig(const LanguageModelConfig& config, std::string_view name);

// Reads and checks config.json. `name` stands for the file in errors.
// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<LanguageModelConfig> ParseLanguageModelConfig(std::string_view text, const std::string& name);

// The text of config.json; parsing it gives the same config.
std::string ToJson(const LanguageModelConfig& config);

// The tensors that model.safetensors of a language model holds: the official names without their prefix
// `decoder.model.`.
//
// The output embedding is the input embedding (tied) and not stored twice. Position frequencies (pos_emb.inv_freq) are
// stored, never recomputed: a half-precision training rounds them.
//
// Every tensor of a model of this configuration, in the order of use: embeddings, then layer by layer.
std::vector<TensorShape> LanguageModelTensors(const LanguageModelConfig& config);

}  // namespace longshort::models
