// BMP's header.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"

namespace longshort {

// Which bits of a pixel are red, green and blue: one run of 1 to 8 bits each.
using BmpMasks = std::array<uint32_t, 3>;

// Where the colours stand that pixels are indices of: `entries` times blue, green, red, and one byte more where
// `entry_bytes` is 4.
struct BmpPalette {
  uint64_t offset = 0;
  int entry_bytes = 4;
  int entries = 0;
};

struct BmpHeader {
  ImageSize size;
  bool top_down = false;
  int bits_per_pixel = 0;
  uint64_t pixels_offset = 0;
  bool run_lengths = false;       // instead of rows; of 4 and 8 bits
  BmpPalette palette;             // of 1, 4 and 8 bits
  std::optional<BmpMasks> masks;  // of 16, 24 and 32 bits
};

// Errors: INVALID_ARGUMENT if the header is broken or of a kind that is not decoded.
absl::StatusOr<BmpHeader> ReadBmpHeader(std::string_view bytes);

}  // namespace longshort
