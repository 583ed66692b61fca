// Parameters and multiply-adds of a ViL-LS, part by part, known from its configuration alone.
#pragma once

#include <vector>

#include "models/costs/stage_cost.h"
#include "models/weights/vil_config.h"

namespace longshort {

// The stages in order, then the head (the last layer norm, pooling and the linear map). Costs are of one image. Window
// attention counts every place that a window has, as it is computed and as the published figures were counted: at the
// border of the grid, some of them hold no patch.
std::vector<StageCost> VilCosts(const VilConfig& config);

}  // namespace longshort
