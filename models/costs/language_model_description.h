// What a language model costs.
#pragma once

#include "models/costs/model_description.h"
#include "models/weights/language_model_config.h"

namespace longshort {

ModelDescription Describe(const LanguageModelConfig& config);

}  // namespace longshort
