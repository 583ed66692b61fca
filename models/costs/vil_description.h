// What a ViL-LS costs.
#pragma once

#include "models/costs/model_description.h"
#include "models/weights/vil_config.h"

namespace longshort {

ModelDescription Describe(const VilConfig& config);

}  // namespace longshort
