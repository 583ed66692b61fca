// Encoded images to pixels, as Pillow's Image.open, ImageOps.exif_transpose and convert("RGB") make them.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_limits.h"
#include "models/images/rgb_image.h"

namespace longshort {

// Decodes JPEG, PNG, WebP, BMP and TIFF (the first page or frame), upright. Grey becomes RGB, alpha is dropped (not
// blended), 16 bits a sample are divided by 257 and rounded. Of a JPEG, four channels are taken as Adobe stores them,
// inverted. Profiles and gamma are ignored.
//
// Thread: any. Errors: INVALID_ARGUMENT for what breaks a limit (then nothing was decoded), is broken, truncated or of
// a kind that is not decoded; RESOURCE_EXHAUSTED if there is no memory for it.
absl::StatusOr<RgbImage> DecodeImage(std::string_view bytes, const ImageLimits& limits);

}  // namespace longshort
