// BMP's header, and the pixels that are bit fields; the other kinds of pixels are OpenCV's to decode.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"
#include "models/images/rgb_image.h"

namespace longshort {

// Which bits of a pixel are red, green and blue: one run of 1 to 8 bits each.
using BmpMasks = std::array<uint32_t, 3>;

struct BmpHeader {
  ImageSize size;
  bool top_down = false;
  int bits_per_pixel = 0;
  uint64_t pixels_offset = 0;
  std::optional<BmpMasks> masks;  // of 16 bits, and of 32 bits where the file names them
};

// Errors: INVALID_ARGUMENT if the header is broken or of a kind that is not decoded.
absl::StatusOr<BmpHeader> ReadBmpHeader(std::string_view bytes);

// Decodes an image whose header has masks; a field of n bits becomes field * 255 / (2^n - 1), rounded down.
// Errors: INVALID_ARGUMENT if the pixels are not all there.
absl::StatusOr<RgbImage> DecodeBmpBitFields(std::string_view bytes, const BmpHeader& header);

}  // namespace longshort
