// JPEG's pixels, by libjpeg.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/images/stored_pixels.h"

namespace longshort {

// Decodes to [height, width, 3] of 8 bits: red, green, blue. Four inks become colours as Pillow makes them.
// REQUIRES: `file` is a PlainJpeg's; `size`, which is within limits, is what its header says.
// Errors: INVALID_ARGUMENT if it cannot be decoded, RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<StoredPixels> DecodeJpegPixels(const std::string& file, const ImageSize& size);

}  // namespace longshort
