// Resizing and cropping in one: only the pixels of the crop are computed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/images/image_header.h"
#include "models/weights/image_preprocessing_config.h"

namespace longshort {

// An image is resized to `resized`, and of that a part is taken.
struct ResizeAndCrop {
  ImageSize resized;
  ImageSize crop;
  int64_t top = 0;
  int64_t left = 0;
};

// The shorter side to resize_shorter_side, the longer one in proportion, rounded down; the crop from the centre, an
// offset of half a pixel to the even side.
ResizeAndCrop CentreCrop(const ImageSize& image, const ImagePreprocessingConfig& config);

// To exactly that size.
ResizeAndCrop WholeImage(const ImageSize& resized);

// Resizes by antialiased bicubic interpolation, first along rows, then along columns; an axis that keeps its size is
// left as it is.
//   values   [image.height, image.width, channels]
//   returns  [crop.height, crop.width, channels]
// Of 8-bit values both passes round to 8 bits, and all bits are Pillow's. Floats are not rounded, but kept in [0, 1],
// as 8-bit values are kept in 0..255.
std::vector<uint8_t> Resize(absl::Span<const uint8_t> values, const ImageSize& image, int64_t channels,
                            const ResizeAndCrop& geometry);
std::vector<float> Resize(absl::Span<const float> values, const ImageSize& image, int64_t channels,
                          const ResizeAndCrop& geometry);

}  // namespace longshort
