// Checks of images that come as pixels.
#pragma once

#include "absl/status/status.h"
#include "models/classifier.h"
#include "models/images/image_limits.h"

namespace longshort {

// Errors: INVALID_ARGUMENT naming the value and the limit, for a size beyond the limits, channels other than 1 and 3,
// values that are not height x width x channels, and a float outside [0, 1] or not a number.
absl::Status CheckRawImage(const RawImage& image, const ImageLimits& limits);

}  // namespace longshort
