// PNG's pixels, by libpng's progressive reader: it inflates no further than the last row, however much data follow.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/images/stored_pixels.h"

namespace longshort {

// Decodes to [height, width, 3]: red, green, blue of 8 or 16 bits, as they are stored. Grey and palettes become
// colours, alpha is dropped. REQUIRES: `file` is a PlainPng's; `size`, which is within limits, is what its header says.
// Errors: INVALID_ARGUMENT if the data are broken or end before the last row, RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<StoredPixels> DecodePngPixels(std::string& file, const ImageSize& size);

}  // namespace longshort
