// JPEG: the segments of a file, read so that only what is whole and of a known size is decoded, and its pixels by
// libjpeg.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "opencv2/core/mat.hpp"

namespace longshort {

// Scans of one image. Encoders write about ten; each costs a pass over all pixels, however short its data are. So a
// large image may have fewer: as many as all have no more than kMaxScannedPixels, but always kMaxScansOfLargeJpeg.
inline constexpr int kMaxJpegScans = 100, kMaxScansOfLargeJpeg = 20;
inline constexpr int64_t kMaxScannedPixels = int64_t{1} << 30;

// Reads as far as the frame header.
// Errors: INVALID_ARGUMENT if there is none, or one that is not decoded: 8 bits a sample, baseline, extended or
// progressive.
absl::StatusOr<ImageHeader> ReadJpegHeader(std::string_view bytes);

struct DecodedJpeg {
  cv::Mat pixels;  // 8 bits: grey, or red, green, blue
  int orientation = 1;
};

// Follows all segments to the end of the image, then decodes. Four inks become colours as Pillow makes them.
// REQUIRES: `header`, whose size is within limits, is ReadJpegHeader(bytes).
// Errors: INVALID_ARGUMENT if a segment or the end is missing, for a second frame, for too many scans, and if it cannot
// be decoded; RESOURCE_EXHAUSTED if libjpeg finds no memory. Throws cv::Exception if there is none for the pixels.
absl::StatusOr<DecodedJpeg> DecodeJpeg(std::string_view bytes, const ImageHeader& header);

}  // namespace longshort
