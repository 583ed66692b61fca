// PNG: the chunks of a file, and its pixels by libpng's progressive reader, which inflates no further than the last
// row, however much data follow.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "opencv2/core/mat.hpp"

namespace longshort {

// Errors: INVALID_ARGUMENT if the first chunk is not a whole IHDR.
absl::StatusOr<ImageHeader> ReadPngHeader(std::string_view bytes);

struct DecodedPng {
  cv::Mat pixels;  // 8 or 16 bits: grey or red, green, blue, and alpha if the file has it
  int orientation = 1;
};

// libpng gets only the chunks that the pixels need: IHDR, PLTE, tRNS, IDAT, IEND. Palettes become colours.
// REQUIRES: `header`, whose size is within limits, is ReadPngHeader(bytes).
// Errors: INVALID_ARGUMENT if the file ends before the chunk IEND does, if the data are broken or end before the last
// row; RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<DecodedPng> DecodePng(std::string_view bytes, const ImageHeader& header);

}  // namespace longshort
