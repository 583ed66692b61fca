// The trained tensors of a language model: made, listed, turned into a decoder, written as a model directory.
#pragma once

#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/language_model/decoder.h"
#include "models/train/named_parameter.h"
#include "models/weights/language_model_config.h"

namespace longshort {

// Random weights for training from nothing: matrices normal with deviation 1/sqrt(in) (the embedding 1/sqrt(d)), gains
// 1, biases 0. `seed` decides every value. All but pos_emb.inv_freq are trained.
std::vector<NamedParameter> InitialLanguageModelParameters(const LanguageModelConfig& config, uint64_t seed);

// A decoder that computes with these very tensors, so that gradients reach them. Matrix products run in `product_type`.
Decoder DecoderOver(const LanguageModelConfig& config, const std::vector<NamedParameter>& parameters,
                    at::ScalarType product_type);

// Writes config.json, model.safetensors (float16) and vocabulary.txt into `directory`, made if it is not there.
absl::Status WriteLanguageModel(const std::string& directory, const LanguageModelConfig& config,
                                const std::vector<NamedParameter>& parameters, const std::string& vocabulary);

}  // namespace longshort
