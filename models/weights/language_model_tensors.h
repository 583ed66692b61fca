// The tensors that model.safetensors of a language model holds: the official names without their prefix
// `decoder.model.`.
//
// The output embedding is the input embedding (tied) and not stored twice. Position frequencies (pos_emb.inv_freq) are
// stored, never recomputed: a half-precision training rounds them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/weights/language_model_config.h"
#include "models/weights/safetensors.h"

namespace longshort {

struct TensorShape {
  std::string name;
  std::vector<int64_t> shape;
};

// Every tensor of a model of this configuration, in the order of use: embeddings, then layer by layer.
std::vector<TensorShape> LanguageModelTensors(const LanguageModelConfig& config);

// Trained numbers: all tensors but the position frequencies; the tied embedding counts once.
int64_t CountParameters(const LanguageModelConfig& config);

// Checks that the file holds exactly those tensors, each of its shape and of type F32, F16 or BF16.
// Errors: INVALID_ARGUMENT naming the file and the tensor that is missing, unknown, or of another shape or type.
absl::Status CheckTensors(const SafetensorsFile& file, const LanguageModelConfig& config);

}  // namespace longshort
