// A decoded image.
#pragma once

#include <cstdint>
#include <vector>

#include "models/images/image_header.h"

namespace longshort {

struct RgbImage {
  ImageSize size;
  std::vector<uint8_t> values;  // [height, width, 3]: red, green, blue
};

}  // namespace longshort
