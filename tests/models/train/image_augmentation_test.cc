#include "models/train/image_augmentation.h"

#include <algorithm>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "opencv2/core.hpp"

namespace longshort::models::image_augmentation_test {

// [h, w, 3]: every pixel another colour.
cv::Mat Pixels(int height, int width) {
  cv::Mat pixels(height, width, CV_8UC3);
  for (int i = 0; i < height * width * 3; ++i) pixels.data[i] = static_cast<uint8_t>(i % 251);
  return pixels;
}

// [3] of an image of one colour.
std::vector<float> ColourOf(const at::Tensor& image) {
  const at::Tensor colour = image.mean(at::IntArrayRef({1, 2})).contiguous();
  EXPECT_TRUE(image.allclose(colour.view({3, 1, 1}).expand_as(image), 0, 1e-5)) << "of one colour";
  return {colour.const_data_ptr<float>(), colour.const_data_ptr<float>() + 3};
}

TEST(ImageAugmentation, IsDecidedBySeedAndDraw) {
  const cv::Mat pixels = Pixels(20, 30);
  const auto varied = [&](uint64_t seed, uint64_t number) {
    RandomDraws random(seed, number);
    return AugmentImage(pixels, 16, 16, {}, random);
  };
  EXPECT_TRUE(varied(1, 5).equal(varied(1, 5)));
  EXPECT_FALSE(varied(1, 5).equal(varied(1, 6)));
  EXPECT_FALSE(varied(1, 5).equal(varied(2, 5)));
  EXPECT_EQ(varied(1, 5).sizes(), at::IntArrayRef({3, 16, 16}));
}

TEST(ImageAugmentation, WithoutVariationOnlyMirrorsAndResizes) {
  // Of one colour, whatever the crop: 51 / 255 = 0.2.
  const cv::Mat pixels(9, 9, CV_8UC3, cv::Scalar::all(51));
  RandomDraws random(1, 0);
  const at::Tensor image = AugmentImage(pixels, 5, 7, {.smallest_crop = 1, .colour_jitter = 0}, random);
  EXPECT_TRUE(image.allclose(at::full({3, 5, 7}, 0.2), 0, 1e-6));
}

// The pixel's number is its colour: each of the image's corners is where the crop of the whole image has it.
TEST(ImageAugmentation, MirrorsHalfOfTheImages) {
  const cv::Mat pixels = Pixels(1, 80);  // brighter to the right
  int mirrored = 0;
  for (uint64_t stream = 0; stream < 200; ++stream) {
    RandomDraws random(1, stream);
    const at::Tensor image = AugmentImage(pixels, 1, 20, {.smallest_crop = 1, .colour_jitter = 0}, random);
    mirrored += image[0][0][0].item<float>() > image[0][0][19].item<float>() ? 1 : 0;
  }
  EXPECT_NEAR(mirrored, 100, 30);
}

// A colour of saturation 0.5 and brightness 0.4: both change by up to a half, the hue stays.
TEST(ImageAugmentation, JitterKeepsTheHue) {
  const cv::Mat pixels(8, 8, CV_8UC3, cv::Scalar(102, 51, 51));
  float purest = 0, dullest = 1, brightest = 0, darkest = 1;
  for (uint64_t stream = 0; stream < 200; ++stream) {
    RandomDraws random(3, stream);
    const std::vector<float> rgb = ColourOf(AugmentImage(pixels, 4, 4, {.colour_jitter = 0.5}, random));
    EXPECT_NEAR(rgb[1], rgb[2], 1e-5) << "red";
    EXPECT_GT(rgb[0], rgb[1]);
    // Contrast moves each channel to or from the mean. So the mean shows brightness, and the order shows saturation.
    const float mean = (rgb[0] + rgb[1] + rgb[2]) / 3;
    brightest = std::max(brightest, mean);
    darkest = std::min(darkest, mean);
    purest = std::max(purest, (rgb[0] - rgb[1]) / mean);
    dullest = std::min(dullest, (rgb[0] - rgb[1]) / mean);
  }
  EXPECT_GT(brightest, 0.35);
  EXPECT_LT(darkest, 0.18);
  EXPECT_GT(purest, 1.1);
  EXPECT_LT(dullest, 0.4);
}

TEST(ImageAugmentation, CutmixMixesTargetsByTheAreaOfTheRectangle) {
  const int64_t side = 10;
  at::Tensor images = at::cat({at::zeros({1, 3, side, side}), at::ones({1, 3, side, side})});
  at::Tensor targets = at::eye(2);
  std::vector<RandomDraws> random = {{1, 0}, {1, 1}};
  MixImages(images, targets, {.cutmix = 1}, random);
  for (int64_t i = 0; i < 2; ++i) {
    // The images are of their own class's number, so that their mean is how much of class 1 is in them.
    EXPECT_NEAR(targets[i][1].item<double>(), images[i].mean().item<double>(), 1e-6);
    EXPECT_NEAR(targets[i].sum().item<double>(), 1, 1e-6);
  }
  EXPECT_GT(images[0].mean().item<double>(), 0);
}

}  // namespace longshort::models::image_augmentation_test
