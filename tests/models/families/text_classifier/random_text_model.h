// A text classifier with random weights of every kind, for tests: no bias is zero, no gain is one.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ATen/core/Tensor.h"
#include "models/families/text_classifier/text_classifier_config.h"

namespace longshort::models {

// Two layers of 2 heads of 8 channels, w=4, r=3, documents of up to 40 tokens, 23 ids, 3 classes.
TextClassifierConfig SmallTextConfig();

// The same as a long-document encoder: `<s>` 0, padding 1, `</s>` 2.
TextClassifierConfig SmallEncoderConfig();

// By name, as TextClassifierTensors lists them.
std::map<std::string, at::Tensor> RandomTextTensors(const TextClassifierConfig& config, uint64_t seed);

// Writes config.json and model.safetensors into `directory`.
void WriteTextModel(const std::string& directory, const TextClassifierConfig& config, uint64_t seed);

}  // namespace longshort::models
