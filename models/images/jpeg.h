// JPEG's segments, as far as they are needed to decode only what is whole and of a known size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"

namespace longshort {

// Scans of one image. Encoders write about ten; each costs a pass over all pixels, however short its data are. So a
// large image may have fewer: as many as all have no more than kMaxScannedPixels, but always kMaxScansOfLargeJpeg.
inline constexpr int kMaxJpegScans = 100, kMaxScansOfLargeJpeg = 20;
inline constexpr int64_t kMaxScannedPixels = int64_t{1} << 30;

// Errors: INVALID_ARGUMENT if there is no frame header, or one that is not decoded: 8 bits a sample, baseline, extended
// or progressive.
absl::StatusOr<ImageSize> JpegSize(std::string_view bytes);

struct PlainJpeg {
  std::string file;     // only what the pixels need: no notes, profiles, thumbnails, and nothing behind the end
  int orientation = 1;  // that EXIF says; 1 if there is none
};

// Follows all segments to the end of the image.
// Errors: INVALID_ARGUMENT if a segment or the end is missing, for a second frame and for too many scans.
absl::StatusOr<PlainJpeg> MakePlainJpeg(std::string_view bytes);

}  // namespace longshort
