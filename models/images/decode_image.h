// Decodes images, with the results of Pillow's Image.open, ImageOps.exif_transpose and convert("RGB").
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/weights/image_preprocessing_config.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

struct DecodeOptions {
  OrientationUse orientation = OrientationUse::kApply;
};

// Decodes the first frame to upright RGB of 8 bits, or as stored if the orientation is to be ignored. Converts grey to
// RGB, ignores alpha (no blending), and divides samples of 16 bits by 257, with rounding. The four channels of a CMYK
// JPEG are inverted, as Adobe stores them. Profiles and gamma are ignored. REQUIRES: `header` is
// ReadImageHeader(bytes, ...).
//
// Thread-safe. Errors: INVALID_ARGUMENT for images that are broken, truncated or not supported; RESOURCE_EXHAUSTED if
// memory is exhausted.
absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageHeader& header, const DecodeOptions& options);

// Reads the header, then decodes. Errors: also those of ReadImageHeader.
absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageLimits& limits,
                                    const DecodeOptions& options = {});

}  // namespace longshort::models
