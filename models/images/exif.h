// EXIF, which is a TIFF file inside an image.
#pragma once

#include <string_view>

namespace longshort {

// The tag "Orientation", 1 to 8: how the stored pixels must be turned to stand upright (orientation.h). 1, upright as
// stored, if there is none or the bytes cannot be read; a broken note on an image is no reason to refuse it.
int ExifOrientation(std::string_view exif);

}  // namespace longshort
