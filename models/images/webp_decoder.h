// WebP's pixels, by libwebp.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/images/stored_pixels.h"

namespace longshort {

// Decodes an image that is not animated to [height, width, 3] of 8 bits: red, green, blue; alpha is dropped.
// REQUIRES: `size`, which is within limits, is WebpSize(file).
// Errors: INVALID_ARGUMENT if it cannot be decoded, RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<StoredPixels> DecodeWebpPixels(std::string_view file, const ImageSize& size);

}  // namespace longshort
