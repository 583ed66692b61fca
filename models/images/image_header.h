// What an encoded image says of itself, read before anything of it is decoded.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/images/image_limits.h"

namespace longshort {

enum class ImageFormat { kJpeg, kPng, kWebp, kBmp, kTiff };

// Pixels as they are stored, before any orientation.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;

  bool operator==(const ImageSize&) const = default;
};

struct ImageHeader {
  ImageFormat format = ImageFormat::kJpeg;
  ImageSize size;
};

// Tells the format by its first bytes and reads the size of its first page or frame.
// Errors: INVALID_ARGUMENT if the format is unknown, or if the header is broken or of a kind that is not decoded.
absl::StatusOr<ImageHeader> ReadImageHeader(std::string_view bytes);

// Errors: INVALID_ARGUMENT naming the value and the limit that it exceeds.
absl::Status CheckBytes(int64_t bytes, const ImageLimits& limits);
absl::Status CheckSize(const ImageSize& size, const ImageLimits& limits);

}  // namespace longshort
