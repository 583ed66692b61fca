// Resizing and cropping in one, by Pillow's arithmetic or by OpenCV.
#pragma once

#include <cstdint>

#include "models/classifier.h"
#include "models/weights/image_preprocessing_config.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

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

//   image    [height, width, channels] of uint8, or of floats in [0, 1]; 1 or 3 channels
//   returns  [crop.height, crop.width, channels] of the same
// Floats are not rounded, but kept in [0, 1], as 8-bit values are kept in 0..255.
//
// By Pillow: antialiased bicubic interpolation, first along rows, then along columns; an axis that keeps its size is
// left as it is. Both passes round 8-bit values to 8 bits, and all bits are Pillow's. Only the pixels of the crop are
// computed.
// By OpenCV: cv::resize of the whole image, then the crop. REQUIRES: `resized` is of a size that memory has room for.
// Throws cv::Exception.
cv::Mat Resize(const cv::Mat& image, const ResizeAndCrop& geometry, ResizeMethod method);

}  // namespace longshort::models
