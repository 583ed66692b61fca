// How large an image may be. Sizes are read from the image's header and checked before anything is decoded.
#pragma once

#include <cstdint>

namespace longshort {

struct ImageLimits {
  // Bytes of the encoded image. A photo of max_pixels in JPEG's usual qualities is below this. At most 1 GiB.
  int64_t max_bytes = 32 << 20;
  // Width times height. Decoding 64 megapixels (8192 x 8192) takes up to 0.8 GB while it lasts (16-bit or progressive)
  // and about a second; cameras and phones stay below it.
  int64_t max_pixels = 64 << 20;
  // Pixels of a side: the most that a JPEG can say.
  int64_t max_side = 65535;
};

}  // namespace longshort
