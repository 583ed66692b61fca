// OpenCV's decoders behind a border that no exception, thread or printed line of theirs crosses.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "opencv2/core/mat.hpp"

namespace longshort {

// Decodes to [height, width, 3]: blue, green, red of 8 bits, as they are stored, not turned. Grey becomes colours,
// alpha is dropped. REQUIRES: the header of `bytes` was read and is within limits; `size` is what it says. Errors:
// INVALID_ARGUMENT if OpenCV cannot decode it to that size, RESOURCE_EXHAUSTED if there is no memory for it.
absl::StatusOr<cv::Mat> DecodeWithOpenCv(std::string_view bytes, const ImageSize& size);

}  // namespace longshort
