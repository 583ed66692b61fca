// Random variations of training images, so that an image differs each time it is drawn.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/train/example_order.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

struct AugmentationOptions {
  // Side of the training images in pixels; 0: that of the preprocessing's crop. Objects look larger in random crops
  // than in whole images. So training images may be smaller than served ones, which also costs less.
  int64_t side = 0;
  double smallest_crop = 0.35;  // minimum area of a random crop, as a fraction of the image
  double colour_jitter = 0.3;   // maximum change of brightness, contrast and saturation, as a fraction
  double cutmix = 0;            // probability that a rectangle of another image, with its target, is mixed in
};

// Cuts out a random rectangle, mirrors it at random, resizes it and changes its colours, with OpenCV.
//   pixels   [h, w, 3] uint8, RGB
//   returns  [3, height, width] float32 in about [0, 1]
// Throws cv::Exception if memory is exhausted.
at::Tensor AugmentImage(const cv::Mat& pixels, int64_t height, int64_t width, const AugmentationOptions& options,
                        RandomDraws& random);

// CutMix: with probability `options.cutmix`, replaces a rectangle of an image by that of the next image. The target
// becomes the mean of both targets, weighted by area. Image i uses random[i].
//   images   [n, 3, height, width]
//   targets  [n, classes]
void MixImages(at::Tensor& images, at::Tensor& targets, const AugmentationOptions& options,
               std::vector<RandomDraws>& random);

}  // namespace longshort::models
