// EXIF's orientations: how stored pixels are turned to stand upright.
#pragma once

#include <cstdint>

#include "models/images/image_header.h"

namespace longshort {

// Where the pixels of the upright image stand among the stored ones: pixel (y, x) is the stored pixel
// first + y * down + x * right, counted row by row.
struct UprightWalk {
  ImageSize size;  // of the upright image
  int64_t first = 0;
  int64_t down = 0;
  int64_t right = 0;
};

// `orientation` 1 to 8:
//   1 upright          2 mirrored left to right     3 turned by 180°   4 mirrored top to bottom
//   5 transposed       6 to be turned clockwise     7 transposed along the other diagonal
//   8 to be turned counter-clockwise
UprightWalk WalkUpright(const ImageSize& stored, int orientation);

}  // namespace longshort
