// A decoded image as its file stores it, before it is made upright and of three channels of 8 bits.
#pragma once

#include <cstdint>
#include <vector>

#include "models/images/image_header.h"

namespace longshort {

struct StoredPixels {
  StoredPixels() = default;
  // All 0. Throws std::bad_alloc.
  StoredPixels(const ImageSize& size, int channels, int sample_bytes = 1)
      : size(size),
        channels(channels),
        sample_bytes(sample_bytes),
        bytes(RowBytes() * static_cast<size_t>(size.height)) {}

  size_t RowBytes() const { return static_cast<size_t>(size.width) * static_cast<size_t>(channels * sample_bytes); }
  uint8_t* Row(int64_t y) { return bytes.data() + static_cast<size_t>(y) * RowBytes(); }

  ImageSize size;
  int channels = 0;
  int sample_bytes = 1;        // 1, or 2 in the machine's order
  std::vector<uint8_t> bytes;  // [height, width, channels] samples
};

}  // namespace longshort
