#include "models/train/image_augmentation.h"

#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"

namespace longshort {
namespace {

// [h, w, 3]: every pixel another colour.
at::Tensor Pixels(int64_t height, int64_t width) {
  return at::arange(height * width * 3, at::kInt).remainder(251).to(at::kByte).view({height, width, 3});
}

TEST(ImageAugmentation, IsDecidedBySeedAndDraw) {
  const at::Tensor pixels = Pixels(20, 30);
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
  const at::Tensor pixels = at::full({9, 9, 3}, 51, at::kByte);
  RandomDraws random(1, 0);
  const at::Tensor image = AugmentImage(pixels, 5, 7, {.smallest_crop = 1, .colour_jitter = 0}, random);
  EXPECT_TRUE(image.allclose(at::full({3, 5, 7}, 0.2), 0, 1e-6));
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

}  // namespace
}  // namespace longshort
