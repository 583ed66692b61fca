// TIFF's samples by libtiff. A strip or tile that it cannot decode is an error.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "models/images/stored_pixels.h"
#include "models/images/tiff.h"

namespace longshort {

// Decodes the first page, not turned: of 16 bits a sample to [height, width, samples], and else to [height, width, 4]
// of 8 bits: red, green, blue, alpha. REQUIRES: `file` was made plain, and `header`, which is within limits, is what it
// says. Errors: INVALID_ARGUMENT if the data are broken or end early, RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<StoredPixels> DecodeTiffSamples(const std::string& file, const TiffHeader& header);

}  // namespace longshort
