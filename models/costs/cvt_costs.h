// Parameters and multiply-adds of a CvT*-LS, part by part, known from its configuration alone.
#pragma once

#include <cstdint>
#include <vector>

#include "models/costs/stage_cost.h"
#include "models/weights/cvt_config.h"

namespace longshort {

// The stages in order, then the head (the last layer norm, pooling and the linear map). Costs are of one image of this
// size, in pixels, that CheckCvtImageSize accepts. Window attention counts every place that a window has, as it is
// computed and as the published figures were counted: at the border of the grid, some of them hold no token. Batch
// norms count with the layer norms, as in training; a served model has folded them into its convolutions.
std::vector<StageCost> CvtCosts(const CvtConfig& config, int64_t height, int64_t width);
// The sum of their multiply-adds.
double CvtMultiplyAdds(const CvtConfig& config, int64_t height, int64_t width);

}  // namespace longshort
