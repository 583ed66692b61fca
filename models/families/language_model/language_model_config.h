// The config.json of a language model, parsed strictly: the paper's hyperparameters.
//
//   {"architecture": "language_model", "layers": 12, "model_width": 512, ..., "tokenizer": "fairseq_bytes"}
//
// All fields are required, and no others are allowed. Their names in the file are those here and in LanguageModelShape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/families/family.h"
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
  // Distances greater than the clamp use the position of the clamp. The first is in tokens of the window, the second in
  // compressed vectors. 0: no clamp. config.json may also have -1, as the official configurations do.
  int64_t window_position_clamp = 0;
  int64_t chunk_position_clamp = 0;

  bool pre_layer_norm = true;    // layer norms before attention and feed-forward, or (false) after
  bool projection_bias = false;  // the query, key, value and output projections have biases
  Activation activation = Activation::kGelu;
  TokenizerKind tokenizer = TokenizerKind::kNone;

  // Number of elements in the position tables of all layers: layers * (W + ((M+L)/C - 1)*R) * d.
  int64_t PositionTableElements() const;

  friend bool operator==(const LanguageModelConfig&, const LanguageModelConfig&) = default;
};

// All fields of config.json.
std::vector<FieldDescription> LanguageModelFields();

// Checks the ranges of all fields, and the rules between fields. `name` (the file) starts the message.
// For a valid config, the products of fields that the model computes do not overflow int64, and the position tables
// have fewer than 2^30 elements. Errors: INVALID_ARGUMENT naming the field, its value and the limit or rule.
absl::Status CheckLanguageModelConfig(const LanguageModelConfig& config, std::string_view name);

// Parses and checks config.json. `name` is the file's name in errors.
// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<LanguageModelConfig> ParseLanguageModelConfig(std::string_view text, const std::string& name);

// The text of config.json; parsing it gives the same config.
std::string ToJson(const LanguageModelConfig& config);

// The tensors of a language model in model.safetensors, in the order of use: embeddings, then layer by layer. The names
// are the official ones without their prefix `decoder.model.`.
//
// The output embedding is the input embedding (tied), and is stored once. Position frequencies (pos_emb.inv_freq) are
// stored, because training in half precision rounds them.
std::vector<TensorShape> LanguageModelTensors(const LanguageModelConfig& config);

ModelDescription Describe(const LanguageModelConfig& config);

}  // namespace longshort::models
