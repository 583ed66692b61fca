// The tensors that model.safetensors of a language model holds: the official names without their prefix
// `decoder.model.`.
//
// The output embedding is the input embedding (tied) and not stored twice. Position frequencies (pos_emb.inv_freq) are
// stored, never recomputed: a half-precision training rounds them.
#pragma once

#include <cstdint>
#include <vector>

#include "models/weights/language_model_config.h"
#include "models/weights/tensor_shapes.h"

namespace longshort {

// Every tensor of a model of this configuration, in the order of use: embeddings, then layer by layer.
std::vector<TensorShape> LanguageModelTensors(const LanguageModelConfig& config);

// Trained numbers: all tensors but the position frequencies; the tied embedding counts once.
int64_t CountParameters(const LanguageModelConfig& config);

}  // namespace longshort
