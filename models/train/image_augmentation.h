// Variations of a training image, so that a model sees no image twice as it is.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/train/example_order.h"
#include "opencv2/core/mat.hpp"

namespace longshort::models {

struct AugmentationOptions {
  // Pixels of a side of the images that are trained on; 0: those of the preprocessing's crop. Things look larger in
  // random rectangles than in whole images, so that a smaller side here suits the size that is served, and costs less.
  int64_t side = 0;
  double smallest_crop = 0.35;  // of the image's area; a random rectangle is cut out and resized
  double colour_jitter = 0.3;   // brightness, contrast and saturation change by up to this part
  double cutmix = 0;            // probability that a rectangle comes from another image, and the target with it
};

// A random rectangle, perhaps mirrored, resized, its colours changed: by OpenCV.
//   pixels   [h, w, 3] uint8, RGB
//   returns  [3, height, width] float32 in about [0, 1]
// Throws cv::Exception if there is no memory.
at::Tensor AugmentImage(const cv::Mat& pixels, int64_t height, int64_t width, const AugmentationOptions& options,
                        RandomDraws& random);

// CutMix: each of `images` [n, 3, height, width] gets, with probability `options.cutmix`, a rectangle of the next
// one's, and `targets` [n, classes] that rectangle's share of the next one's target. Image i draws from random[i].
void MixImages(at::Tensor& images, at::Tensor& targets, const AugmentationOptions& options,
               std::vector<RandomDraws>& random);

}  // namespace longshort::models
