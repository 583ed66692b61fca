// A language model with random weights of every kind, for tests: no bias is zero, no gain is one.
#pragma once

#include <cstdint>
#include <memory>

#include "models/families/language_model/decoder.h"
#include "models/families/language_model/language_model_config.h"
#include "models/model.h"

namespace longshort::models {

Decoder RandomDecoder(const LanguageModelConfig& config, uint64_t seed, at::ScalarType product_type = at::kFloat);

LanguageModelInfo InfoOf(const LanguageModelConfig& config);

// A small configuration: 2 layers, 3 heads of 8 channels, C=4, R=1, W=10, M=24, L=12.
LanguageModelConfig SmallConfig();
// The same with one layer and one head: the processor takes a while for a GPU's blocks.
LanguageModelConfig QuickConfig();

}  // namespace longshort::models
