#include "models/images/exif.h"

#include "models/images/tiff_directory.h"

namespace longshort {

int ExifOrientation(std::string_view exif) {
  const auto directory = TiffDirectory::Read(exif);
  if (!directory.ok()) return 1;
  return OrientationOf(*directory);
}

}  // namespace longshort
