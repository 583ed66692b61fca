// How large an image may be. Sizes are read from the image's header and checked before anything is decoded.
#pragma once

#include <cstdint>

namespace longshort {

struct ImageLimits {
  // Bytes of the encoded image. A photo of max_pixels in JPEG's usual qualities is below this. At most 1 GiB.
  int64_t max_bytes = 32 << 20;
  // Width times height. Cameras and phones stay below 64 megapixels (8192 x 8192), which take about a second to decode.
  int64_t max_pixels = 64 << 20;
  // Pixels of a side: the most that a JPEG can say.
  int64_t max_side = 65535;

  // Memory that decoding one image takes while it lasts, at most: a pixel of four 16-bit channels, as TIFF has them,
  // stands in its strip and in the decoded image; a file is copied to be made plain, and by libtiff.
  static constexpr int64_t kDecodingBytesPerPixel = 2 * 4 * 2;
  int64_t DecodingBytes() const { return max_pixels * kDecodingBytesPerPixel + 2 * max_bytes; }
};

}  // namespace longshort
