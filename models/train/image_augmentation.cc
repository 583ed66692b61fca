#include "models/train/image_augmentation.h"

#include <algorithm>
#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "opencv2/core.hpp"
#include "opencv2/imgproc.hpp"

namespace longshort::models {
namespace {

// A random rectangle of about `area` pixels and `ratio` = width / height, shrunk to fit into height x width.
cv::Rect RandomRectangle(int64_t height, int64_t width, double area, double ratio, RandomDraws& random) {
  cv::Rect rectangle;
  rectangle.height = static_cast<int>(std::clamp<int64_t>(std::llround(std::sqrt(area / ratio)), 1, height));
  rectangle.width = static_cast<int>(std::clamp<int64_t>(std::llround(std::sqrt(area * ratio)), 1, width));
  rectangle.y = static_cast<int>(random.Below(height - rectangle.height + 1));
  rectangle.x = static_cast<int>(random.Below(width - rectangle.width + 1));
  return rectangle;
}

double RandomRatio(RandomDraws& random) {
  const double widest = std::log(4.0 / 3.0);
  return std::exp(random.Uniform(-widest, widest));
}

// Resizes, with antialiasing if both sides shrink.
cv::Mat Resized(const cv::Mat& image, int64_t height, int64_t width) {
  const bool smaller = image.rows >= height && image.cols >= width;
  cv::Mat resized;
  cv::resize(image, resized, cv::Size(static_cast<int>(width), static_cast<int>(height)), 0, 0,
             smaller ? cv::INTER_AREA : cv::INTER_LINEAR);
  return resized;
}

// Changes saturation and brightness in HSV. image [h, w, 3], float32 in [0, 1].
void JitterColours(cv::Mat& image, double jitter, RandomDraws& random) {
  if (jitter == 0) return;
  const double brightness = random.Uniform(1 - jitter, 1 + jitter);
  const double contrast = random.Uniform(1 - jitter, 1 + jitter);
  const double saturation = random.Uniform(1 - jitter, 1 + jitter);
  cv::cvtColor(image, image, cv::COLOR_RGB2HSV);
  cv::multiply(image, cv::Scalar(1, saturation, brightness), image);
  cv::min(image, cv::Scalar(360, 1, 1 + jitter), image);  // saturation is at most 1
  cv::cvtColor(image, image, cv::COLOR_HSV2RGB);
  const cv::Scalar means = cv::mean(image);
  const double mean = (means[0] + means[1] + means[2]) / 3;
  image.convertTo(image, CV_32F, contrast, mean * (1 - contrast));
}

}  // namespace

at::Tensor AugmentImage(const cv::Mat& pixels, int64_t height, int64_t width, const AugmentationOptions& options,
                        RandomDraws& random) {
  const double area = static_cast<double>(pixels.total()) * random.Uniform(options.smallest_crop, 1);
  const double ratio = RandomRatio(random);
  cv::Mat image = Resized(pixels(RandomRectangle(pixels.rows, pixels.cols, area, ratio, random)), height, width);
  constexpr int kLeftToRight = 1;
  if (random.Below(2) == 1) cv::flip(image, image, kLeftToRight);
  image.convertTo(image, CV_32F, 1.0 / 255);
  JitterColours(image, options.colour_jitter, random);
  const at::Tensor rows = at::from_blob(image.data, {image.rows, image.cols, 3}, at::kFloat);
  return rows.permute({2, 0, 1}).clone(at::MemoryFormat::Contiguous);
}

void MixImages(at::Tensor& images, at::Tensor& targets, const AugmentationOptions& options,
               std::vector<RandomDraws>& random) {
  if (options.cutmix == 0) return;
  const at::Tensor given_images = images.clone(), given_targets = targets.clone();
  const int64_t count = images.size(0), height = images.size(2), width = images.size(3);
  const double whole = static_cast<double>(height * width);
  for (int64_t i = 0; i < count; ++i) {
    if (random[i].Uniform(0, 1) >= options.cutmix) continue;
    const int64_t next = (i + 1) % count;
    const double area = whole * random[i].Uniform(0, 1);
    const cv::Rect cut = RandomRectangle(height, width, area, /*ratio=*/1, random[i]);
    const auto part = [&](const at::Tensor& image) {
      return image.narrow(1, cut.y, cut.height).narrow(2, cut.x, cut.width);
    };
    part(images[i]).copy_(part(given_images[next]));
    const double share = static_cast<double>(cut.height) * cut.width / whole;
    targets[i].mul_(1 - share).add_(given_targets[next], share);
  }
}

}  // namespace longshort::models
