// Encoded images to pixels, as Pillow's Image.open, ImageOps.exif_transpose and convert("RGB") make them.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

// Decodes the first frame upright, to red, green, blue of 8 bits. Grey becomes RGB, alpha is dropped (not blended), 16
// bits a sample are divided by 257 and rounded. Of a JPEG, four channels are taken as Adobe stores them, inverted.
// Profiles and gamma are ignored. REQUIRES: `header` is ReadImageHeader(bytes, ...).
//
// Thread: any. Errors: INVALID_ARGUMENT for what is broken, truncated or of a kind that is not decoded;
// RESOURCE_EXHAUSTED if there is no memory for it.
absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageHeader& header);

// Reads the header first. Errors: those of ReadImageHeader too; then nothing was decoded.
absl::StatusOr<cv::Mat> DecodeImage(std::string_view bytes, const ImageLimits& limits);

}  // namespace longshort::models
