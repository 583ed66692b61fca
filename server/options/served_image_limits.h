// How large the images that the server takes may be.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/images/image_header.h"
#include "server/options/server_options.h"

namespace longshort {

// As many pixels as the options say, and so that an image of the most bytes fits in a message: with a model's name of
// 255 bytes, options and lengths, a ClassifyImage call holds less than 4 KiB beside its image.
// REQUIRES: the options were validated.
inline ImageLimits ServedImageLimits(const ServerOptions& options) {
  constexpr int64_t kBesideAnImageBytes = 4096;
  ImageLimits limits;
  limits.max_pixels = options.max_image_pixels;
  limits.max_bytes = std::min(limits.max_bytes, std::max<int64_t>(1, options.max_message_bytes - kBesideAnImageBytes));
  return limits;
}

}  // namespace longshort
