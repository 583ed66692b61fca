// PNG's chunks, as far as they are needed before decoding.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"

namespace longshort {

// Errors: INVALID_ARGUMENT if the first chunk is not a whole IHDR.
absl::StatusOr<ImageSize> PngSize(std::string_view bytes);

struct PlainPng {
  std::string file;     // only the chunks that the pixels need: IHDR, PLTE, tRNS, IDAT, IEND
  int orientation = 1;  // that the chunk eXIf says; 1 if there is none
};

// Follows all chunks to the end of the image.
// Errors: INVALID_ARGUMENT if the file ends before the chunk IEND does.
absl::StatusOr<PlainPng> MakePlainPng(std::string_view bytes);

}  // namespace longshort
