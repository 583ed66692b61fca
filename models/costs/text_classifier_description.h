// What a text classifier costs.
#pragma once

#include "models/costs/model_description.h"
#include "models/weights/text_classifier_config.h"

namespace longshort {

ModelDescription Describe(const TextClassifierConfig& config);

}  // namespace longshort
