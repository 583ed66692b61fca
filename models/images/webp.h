// WebP: the chunks of its RIFF container, and its pixels by libwebp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "opencv2/core/mat.hpp"

namespace longshort {

// The size is that of the canvas. Errors: INVALID_ARGUMENT if the first chunk is none of VP8, VP8L and VP8X, or broken.
absl::StatusOr<ImageHeader> ReadWebpHeader(std::string_view bytes);

// A frame of an animation: a WebP file of its own, and where on the canvas it stands.
struct WebpFrame {
  std::string file;  // ReadWebpHeader(file)->size == size
  ImageSize size;
  int64_t top = 0;
  int64_t left = 0;
};

// The first frame, or nothing if the image is not animated. `canvas` is the header's size.
// Errors: INVALID_ARGUMENT if there is no frame, or one that is broken, reaches over the canvas or holds
// an image of another size.
absl::StatusOr<std::optional<WebpFrame>> FirstWebpFrame(std::string_view bytes, const ImageSize& canvas);

struct DecodedWebp {
  cv::Mat pixels;  // 8 bits: red, green, blue
  int orientation = 1;
};

// Alpha is dropped; of an animation the first frame is decoded, on a black canvas.
// REQUIRES: `header`, whose size is within limits, is ReadWebpHeader(bytes).
// Errors: as FirstWebpFrame, and INVALID_ARGUMENT if it cannot be decoded; RESOURCE_EXHAUSTED if libwebp finds no
// memory. Throws cv::Exception if there is none for the pixels.
absl::StatusOr<DecodedWebp> DecodeWebp(std::string_view bytes, const ImageHeader& header);

}  // namespace longshort
