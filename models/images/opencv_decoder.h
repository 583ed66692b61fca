// OpenCV's decoders behind a border that no exception, thread or printed line of theirs crosses.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "opencv2/core/mat.hpp"

namespace longshort {

enum class OpenCvChannels {
  kColours,          // blue, green, red; grey becomes colours, alpha is dropped
  kColoursAndAlpha,  // as many as there are: of an image with alpha blue, green, red, alpha
};

// Decodes to [height, width, 3 or 4]: 8 or 16 bits, as they are stored, not turned.
// REQUIRES: the header of `bytes` was read and is within limits; `size` is what it says.
// Errors: INVALID_ARGUMENT if OpenCV cannot decode it to that size, RESOURCE_EXHAUSTED if there is no memory for it.
absl::StatusOr<cv::Mat> DecodeWithOpenCv(std::string_view bytes, const ImageSize& size,
                                         OpenCvChannels channels = OpenCvChannels::kColours);

}  // namespace longshort
