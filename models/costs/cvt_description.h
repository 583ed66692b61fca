// What a CvT*-LS costs.
#pragma once

#include "models/costs/model_description.h"
#include "models/weights/cvt_config.h"

namespace longshort {

ModelDescription Describe(const CvtConfig& config);

}  // namespace longshort
