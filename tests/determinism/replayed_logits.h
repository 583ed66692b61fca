// The logits after a text, computed directly with the model.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace longshort {

// [V], of the token that follows `tokens`.
std::vector<float> LogitsBehind(const models::LanguageModelWeights& model, const std::vector<int32_t>& tokens);

}  // namespace longshort
