// WebP's RIFF container: its size, its orientation, and the first frame of an animation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/images/image_header.h"

namespace longshort {

// The size of the canvas. Errors: INVALID_ARGUMENT if the first chunk is none of VP8, VP8L and VP8X, or broken.
absl::StatusOr<ImageSize> WebpSize(std::string_view bytes);

// What the chunk EXIF says, or 1.
int WebpOrientation(std::string_view bytes);

// A frame of an animation: a WebP file of its own, and where on the canvas it stands.
struct WebpFrame {
  std::string file;  // WebpSize(file) == size
  ImageSize size;
  int64_t top = 0;
  int64_t left = 0;
};

// The first frame, or nothing if the image is not animated.
// Errors: INVALID_ARGUMENT if there is no frame, or one that is broken, reaches over the canvas or holds
// an image of another size.
absl::StatusOr<std::optional<WebpFrame>> FirstWebpFrame(std::string_view bytes);

}  // namespace longshort
