#include "models/train/image_augmentation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "opencv2/core.hpp"
#include "opencv2/imgproc.hpp"

namespace longshort {
namespace {

struct Rectangle {
  int64_t top = 0, left = 0, height = 0, width = 0;  // pixels
};

// A rectangle of `area` pixels and of `ratio` = width / height that lies within height x width, as far as it can.
Rectangle RandomRectangle(int64_t height, int64_t width, double area, double ratio, RandomDraws& random) {
  Rectangle rectangle;
  rectangle.height = std::clamp<int64_t>(std::llround(std::sqrt(area / ratio)), 1, height);
  rectangle.width = std::clamp<int64_t>(std::llround(std::sqrt(area * ratio)), 1, width);
  rectangle.top = random.Below(height - rectangle.height + 1);
  rectangle.left = random.Below(width - rectangle.width + 1);
  return rectangle;
}

double RandomRatio(RandomDraws& random) {
  const double widest = std::log(4.0 / 3.0);
  return std::exp(random.Uniform(-widest, widest));
}

// Antialiased where both sides shrink.
cv::Mat Resized(const cv::Mat& image, int64_t height, int64_t width) {
  const bool smaller = image.rows >= height && image.cols >= width;
  cv::Mat resized;
  cv::resize(image, resized, cv::Size(static_cast<int>(width), static_cast<int>(height)), 0, 0,
             smaller ? cv::INTER_AREA : cv::INTER_LINEAR);
  return resized;
}

// image [h, w, 3] float32 in [0, 1]. Saturation and brightness change as HSV has them.
void JitterColours(cv::Mat& image, double jitter, RandomDraws& random) {
  if (jitter == 0) return;
  const double brightness = random.Uniform(1 - jitter, 1 + jitter);
  const double contrast = random.Uniform(1 - jitter, 1 + jitter);
  const double saturation = random.Uniform(1 - jitter, 1 + jitter);
  cv::cvtColor(image, image, cv::COLOR_RGB2HSV);
  cv::multiply(image, cv::Scalar(1, saturation, brightness), image);
  cv::min(image, cv::Scalar(360, 1, 1 + jitter), image);  // no colour is purer than pure
  cv::cvtColor(image, image, cv::COLOR_HSV2RGB);
  const cv::Scalar means = cv::mean(image);
  const double mean = (means[0] + means[1] + means[2]) / 3;
  image.convertTo(image, CV_32F, contrast, mean * (1 - contrast));
}

// image [h, w, 3] float32 to [3, h, w].
at::Tensor ToTensor(const cv::Mat& image) {
  at::Tensor tensor = at::empty({3, image.rows, image.cols}, at::kFloat);
  auto* values = tensor.mutable_data_ptr<float>();
  std::array<cv::Mat, 3> channels;
  for (cv::Mat& channel : channels) {
    channel = cv::Mat(image.rows, image.cols, CV_32F, values);
    values += channel.total();
  }
  cv::split(image, channels.data());
  return tensor;
}

}  // namespace

at::Tensor AugmentImage(const cv::Mat& pixels, int64_t height, int64_t width, const AugmentationOptions& options,
                        RandomDraws& random) {
  const double area = static_cast<double>(pixels.total()) * random.Uniform(options.smallest_crop, 1);
  const double ratio = RandomRatio(random);
  const Rectangle crop = RandomRectangle(pixels.rows, pixels.cols, area, ratio, random);
  cv::Mat image = Resized(pixels(cv::Rect(static_cast<int>(crop.left), static_cast<int>(crop.top),
                                          static_cast<int>(crop.width), static_cast<int>(crop.height))),
                          height, width);
  constexpr int kLeftToRight = 1;
  if (random.Below(2) == 1) cv::flip(image, image, kLeftToRight);
  image.convertTo(image, CV_32F, 1.0 / 255);
  JitterColours(image, options.colour_jitter, random);
  return ToTensor(image);
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
    const Rectangle cut = RandomRectangle(height, width, area, /*ratio=*/1, random[i]);
    const auto part = [&](const at::Tensor& image) {
      return image.narrow(1, cut.top, cut.height).narrow(2, cut.left, cut.width);
    };
    part(images[i]).copy_(part(given_images[next]));
    const double share = static_cast<double>(cut.height * cut.width) / whole;
    targets[i].mul_(1 - share).add_(given_targets[next], share);
  }
}

}  // namespace longshort
