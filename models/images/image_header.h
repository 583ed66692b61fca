// The headers of encoded images, and the limits on images. Headers are read and checked before images are decoded.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/classifier.h"

namespace longshort::models {

struct ImageLimits {
  // Bytes of the encoded image, at most 1 GiB. A photo of max_pixels in JPEG's usual qualities is smaller.
  int64_t max_bytes = 32 << 20;
  // Width times height. Most cameras and phones stay below 64 megapixels (8192 x 8192), which take about 1 s to decode.
  int64_t max_pixels = 64 << 20;
  // Pixels of a side: the maximum of JPEG.
  int64_t max_side = 65535;

  // Memory per pixel while an image is decoded, at most. A progressive CMYK JPEG takes 8 bytes for coefficients and 4
  // for samples. A PNG of four 16-bit channels takes 8 bytes, and 4 for the conversion to 8 bits. An image of floats
  // that OpenCV resizes takes 12. The frame of an animation is also copied out of its file.
  static constexpr int64_t kDecodingBytesPerPixel = 12;
  int64_t DecodingBytes() const { return max_pixels * kDecodingBytesPerPixel + max_bytes; }
};

// Recognises the format by its first bytes, and reads the size of the first frame.
// Errors: INVALID_ARGUMENT for another format, which the message names; for a header that is broken or not supported;
// and if the file or the image exceeds a limit, which the message names.
absl::StatusOr<ImageHeader> ReadImageHeader(std::string_view bytes, const ImageLimits& limits);

// Errors: INVALID_ARGUMENT naming the size and the limit that it exceeds.
absl::Status CheckSize(const ImageSize& size, const ImageLimits& limits);

}  // namespace longshort::models
