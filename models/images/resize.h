// Resizes and crops images, with Pillow's arithmetic or with OpenCV.
#pragma once

#include <cstdint>

#include "models/classifier.h"
#include "models/weights/image_preprocessing_config.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

// The size to which an image is resized, and the part of the result that is kept.
struct ResizeAndCrop {
  ImageSize resized;
  ImageSize crop;
  int64_t top = 0;
  int64_t left = 0;
};

// Resizes the shorter side to resize_shorter_side and the longer one in proportion, rounded down. Crops the centre; an
// offset that ends in half a pixel is rounded to the even pixel.
ResizeAndCrop CentreCrop(const ImageSize& image, const ImagePreprocessingConfig& config);

// Resizes to exactly that size, without a crop.
ResizeAndCrop WholeImage(const ImageSize& resized);

//   image    [height, width, channels] of uint8, or of floats in [0, 1]; 1 or 3 channels
//   returns  [crop.height, crop.width, channels] of the same type
// Results are clamped to [0, 1] or 0..255. Floats are not rounded.
//
// Pillow's arithmetic: antialiased bicubic interpolation, first along rows, then along columns. An axis that keeps its
// size is unchanged. Both passes round 8-bit values to 8 bits. The result equals Pillow's in all bits. Only the pixels
// of the crop are computed.
// OpenCV: cv::resize of the whole image, then the crop. REQUIRES: an image of size `resized` fits in memory.
// Throws cv::Exception.
cv::Mat Resize(const cv::Mat& image, const ResizeAndCrop& geometry, ResizeMethod method);

}  // namespace longshort::models
