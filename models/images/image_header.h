// What an encoded image says of itself, and how large an image may be: read and checked before anything is decoded.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/classifier.h"

namespace longshort::models {

struct ImageLimits {
  // Bytes of the encoded image. A photo of max_pixels in JPEG's usual qualities is below this. At most 1 GiB.
  int64_t max_bytes = 32 << 20;
  // Width times height. Cameras and phones stay below 64 megapixels (8192 x 8192), which take about a second to decode.
  int64_t max_pixels = 64 << 20;
  // Pixels of a side: the most that a JPEG can say.
  int64_t max_side = 65535;

  // Memory that decoding one image takes while it lasts, at most. 12 bytes for each pixel: a progressive JPEG of four
  // inks has 8 for its coefficients and 4 for its samples; a PNG of four 16-bit channels has 8, and 4 when they become
  // 8 bits wide; an image of floats that OpenCV resizes has 12. The frame of an animation is copied out of its file.
  static constexpr int64_t kDecodingBytesPerPixel = 12;
  int64_t DecodingBytes() const { return max_pixels * kDecodingBytesPerPixel + max_bytes; }
};

// Tells the format by its first bytes, and reads the size of its first frame.
// Errors: INVALID_ARGUMENT for another format, which the message names; if the header is broken or of a kind that is
// not decoded; and naming the limit that the file's bytes or the image's size exceed.
absl::StatusOr<ImageHeader> ReadImageHeader(std::string_view bytes, const ImageLimits& limits);

// Errors: INVALID_ARGUMENT naming the value and the limit that it exceeds.
absl::Status CheckSize(const ImageSize& size, const ImageLimits& limits);

}  // namespace longshort::models
