// BMP's pixels.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/bmp.h"
#include "models/images/rgb_image.h"

namespace longshort {

// A field of n bits becomes field * 255 / (2^n - 1), rounded down. An index beyond the palette is black, and pixels
// that run lengths leave out have index 0. REQUIRES: `header`, which is within limits, is ReadBmpHeader(bytes). Errors:
// INVALID_ARGUMENT if the palette or the pixels are not all there, or if a run goes beyond its row.
absl::StatusOr<RgbImage> DecodeBmp(std::string_view bytes, const BmpHeader& header);

}  // namespace longshort
