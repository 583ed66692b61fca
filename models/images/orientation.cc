#include "models/images/orientation.h"

namespace longshort {

UprightWalk WalkUpright(const ImageSize& stored, int orientation) {
  const auto [height, width] = stored;
  const int64_t last_row = (height - 1) * width;
  const int64_t last_column = width - 1;
  const ImageSize turned = {width, height};
  switch (orientation) {
    case 2:
      return {stored, last_column, width, -1};
    case 3:
      return {stored, last_row + last_column, -width, -1};
    case 4:
      return {stored, last_row, -width, 1};
    case 5:
      return {turned, 0, 1, width};
    case 6:
      return {turned, last_row, 1, -width};
    case 7:
      return {turned, last_row + last_column, -1, -width};
    case 8:
      return {turned, last_column, -1, width};
    default:
      return {stored, 0, width, 1};
  }
}

}  // namespace longshort
