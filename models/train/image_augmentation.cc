#include "models/train/image_augmentation.h"

#include <algorithm>
#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/ops/_upsample_bilinear2d_aa.h"

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

// image [3, h, w] in [0, 1].
at::Tensor JitterColours(at::Tensor image, double jitter, RandomDraws& random) {
  if (jitter == 0) return image;
  const double brightness = random.Uniform(1 - jitter, 1 + jitter);
  const double contrast = random.Uniform(1 - jitter, 1 + jitter);
  const double saturation = random.Uniform(1 - jitter, 1 + jitter);
  image = image * brightness;
  const at::Tensor grey = image.mean(/*dim=*/0, /*keepdim=*/true);
  image = grey + (image - grey) * saturation;
  const at::Tensor mean = grey.mean();
  return mean + (image - mean) * contrast;
}

}  // namespace

at::Tensor AugmentImage(const at::Tensor& pixels, int64_t height, int64_t width, const AugmentationOptions& options,
                        RandomDraws& random) {
  const double whole = static_cast<double>(pixels.size(0) * pixels.size(1));
  const double area = whole * random.Uniform(options.smallest_crop, 1);
  const double ratio = RandomRatio(random);
  const Rectangle crop = RandomRectangle(pixels.size(0), pixels.size(1), area, ratio, random);
  const at::Tensor cut = pixels.narrow(0, crop.top, crop.height).narrow(1, crop.left, crop.width);
  const at::Tensor channels = cut.permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).div(255);
  at::Tensor image = at::_upsample_bilinear2d_aa(channels.contiguous(), {height, width}, /*align_corners=*/false)[0];
  if (random.Below(2) == 1) image = image.flip(2);
  return JitterColours(image, options.colour_jitter, random);
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
