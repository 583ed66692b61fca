// EXIF's orientation: how stored pixels are turned to stand upright.
#pragma once

#include <string_view>

#include "opencv2/core/mat.hpp"

namespace longshort {

// The tag "Orientation" of EXIF data (a TIFF directory inside an image), 1 to 8; 1, upright as stored, if there is none
// or the bytes cannot be read: a broken note on an image is no reason to refuse it.
int ExifOrientation(std::string_view exif);

// The image upright; the image itself if it stands so already. `orientation` 1 to 8:
//   1 upright          2 mirrored left to right     3 turned by 180°   4 mirrored top to bottom
//   5 transposed       6 to be turned clockwise     7 transposed along the other diagonal
//   8 to be turned counter-clockwise
cv::Mat Upright(const cv::Mat& stored, int orientation);

}  // namespace longshort
