#include "models/images/resize.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/weights/safetensors.h"
#include "opencv2/core.hpp"
#include "tests/base/status_matchers.h"
#include "tests/models/weights/tensor_bytes.h"

namespace longshort::models::resize_test {

std::vector<uint8_t> RandomValues(const ImageSize& size, int64_t channels, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> values(static_cast<size_t>(size.height * size.width * channels));
  for (uint8_t& value : values) value = static_cast<uint8_t>(random());
  return values;
}

template <typename Value>
std::vector<Value> Resized(const std::vector<Value>& values, const ImageSize& size, int64_t channels,
                           const ResizeAndCrop& geometry, ResizeMethod method = ResizeMethod::kPillowBicubic) {
  const cv::Mat image =
      cv::Mat(values, /*copyData=*/true).reshape(static_cast<int>(channels), static_cast<int>(size.height));
  return Resize(image, geometry, method).clone().reshape(1, 1);
}

// The values were computed with Pillow 13: Image.fromarray(...).resize(size, Image.Resampling.BICUBIC).
TEST(Resize, HasPillowsBits) {
  const std::vector<uint8_t> ramp = {0, 10, 40, 90, 160, 250};
  EXPECT_THAT(Resized(ramp, {1, 6}, 1, WholeImage({1, 3})), testing::ElementsAre(4, 65, 200));
  EXPECT_THAT(Resized(ramp, {2, 3}, 1, WholeImage({3, 5})),
              testing::ElementsAre(0, 0, 0, 17, 28, 43, 57, 85, 126, 149, 91, 118, 170, 235, 255));
}

TEST(Resize, KeepsAnImageThatHasTheSizeAlready) {
  const ImageSize size = {7, 5};
  const std::vector<uint8_t> values = RandomValues(size, 3, 1);
  EXPECT_EQ(Resized(values, size, 3, WholeImage(size)), values);
}

TEST(Resize, OneColourStaysThatColour) {
  const std::vector<uint8_t> values(31 * 17 * 3, 203);
  const std::vector<uint8_t> resized = Resized(values, {31, 17}, 3, WholeImage({5, 40}));
  EXPECT_THAT(resized, testing::Each(203));
}

// A tensor of opencv_resized.safetensors.
cv::Mat ReadStored(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.Find(name);
  if (tensor == nullptr) return {};
  const std::vector<std::byte> bytes = BytesOf(file, *tensor);
  const int depth = tensor->type == DataType::kU8 ? CV_8U : CV_32F;
  cv::Mat image(static_cast<int>(tensor->shape[0]), static_cast<int>(tensor->shape[1]),
                CV_MAKETYPE(depth, static_cast<int>(tensor->shape[2])));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(image.data));
  return image;
}

// make_opencv_files.py computed the file with Debian's python3-opencv.
TEST(Resize, HasOpenCvsBits) {
  const auto file = SafetensorsFile::Open(LONGSHORT_TEST_IMAGES "/opencv_resized.safetensors");
  ASSERT_THAT(file, IsOk());
  const std::vector<std::pair<std::string, ResizeMethod>> methods = {{"nearest", ResizeMethod::kOpenCvNearest},
                                                                     {"linear", ResizeMethod::kOpenCvLinear},
                                                                     {"area", ResizeMethod::kOpenCvArea},
                                                                     {"cubic", ResizeMethod::kOpenCvCubic}};
  for (const std::string image : {"colours", "grey", "floats"}) {
    const cv::Mat given = ReadStored(*file, image);
    ASSERT_FALSE(given.empty());
    for (const auto& [filter, method] : methods) {
      for (const ImageSize size : {ImageSize{16, 24}, {20, 33}, {40, 60}, {11, 70}}) {
        const std::string name = absl::StrCat(image, " ", filter, " ", size.height, "x", size.width);
        const cv::Mat expected = ReadStored(*file, name);
        ASSERT_FALSE(expected.empty()) << name;
        const cv::Mat whole = Resize(given, WholeImage(size), method);
        ASSERT_EQ(whole.type(), expected.type()) << name;
        ASSERT_EQ(whole.size(), expected.size()) << name;
        EXPECT_EQ(cv::norm(whole, expected, cv::NORM_INF), 0) << name;
        const cv::Mat crop = Resize(given, {size, {9, 7}, 2, 3}, method);
        EXPECT_EQ(cv::norm(crop, expected(cv::Rect(3, 2, 7, 9)), cv::NORM_INF), 0) << name;
      }
    }
  }
}

// Only the pixels of the crop are computed; they are those of the whole image.
TEST(Resize, ACropIsAPartOfTheWhole) {
  const ImageSize image = {61, 47}, resized = {29, 83};
  const std::vector<uint8_t> values = RandomValues(image, 3, 2);
  const std::vector<uint8_t> whole = Resized(values, image, 3, WholeImage(resized));
  const ResizeAndCrop part = {resized, {10, 20}, 7, 31};
  const std::vector<uint8_t> crop = Resized(values, image, 3, part);
  for (int64_t y = 0; y < 10; ++y) {
    for (int64_t x = 0; x < 20 * 3; ++x) {
      ASSERT_EQ(crop[y * 20 * 3 + x], whole[((7 + y) * 83 + 31) * 3 + x]) << y << ", " << x;
    }
  }
}

TEST(Resize, EveryChannelIsResizedByItself) {
  const ImageSize image = {13, 11}, resized = {6, 19};
  const std::vector<uint8_t> values = RandomValues(image, 3, 3);
  const std::vector<uint8_t> together = Resized(values, image, 3, WholeImage(resized));
  for (size_t channel = 0; channel < 3; ++channel) {
    std::vector<uint8_t> alone;
    for (size_t i = channel; i < values.size(); i += 3) alone.push_back(values[i]);
    const std::vector<uint8_t> expected = Resized(alone, image, 1, WholeImage(resized));
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(together[3 * i + channel], expected[i]);
  }
}

// Two passes that round to 8 bits are at most one level from the unrounded result: 0.5 of the last pass, and what the
// weights (their absolute values sum to at most 1.3) make of 0.5 of the first.
TEST(Resize, FloatsAreTheSameWithoutRounding) {
  const ImageSize image = {40, 52}, resized = {21, 33};
  const std::vector<uint8_t> values = RandomValues(image, 3, 4);
  std::vector<float> floats;
  for (const uint8_t value : values) floats.push_back(static_cast<float>(value) / 255.0F);
  const std::vector<uint8_t> in_levels = Resized(values, image, 3, WholeImage(resized));
  const std::vector<float> unrounded = Resized(floats, image, 3, WholeImage(resized));
  ASSERT_EQ(unrounded.size(), in_levels.size());
  for (size_t i = 0; i < unrounded.size(); ++i) {
    ASSERT_NEAR(255.0F * unrounded[i], in_levels[i], 1.16F);
    ASSERT_GE(unrounded[i], 0.0F);
    ASSERT_LE(unrounded[i], 1.0F);
  }
}

// Enlarging a step overshoots it; values stay what a pixel can be.
TEST(Resize, OvershootIsCut) {
  const std::vector<uint8_t> step = {0, 0, 0, 255, 255, 255};
  EXPECT_THAT(Resized(step, {1, 6}, 1, WholeImage({1, 24})),
              testing::AllOf(testing::Contains(0), testing::Contains(255)));
  const std::vector<float> unit_step = {0, 0, 0, 1, 1, 1};
  for (const ResizeMethod method : {ResizeMethod::kPillowBicubic, ResizeMethod::kOpenCvCubic}) {
    EXPECT_THAT(Resized(unit_step, {1, 6}, 1, WholeImage({1, 24}), method),
                testing::Each(testing::AllOf(testing::Ge(0.0F), testing::Le(1.0F))));
  }
}

TEST(CentreCrop, ResizesTheShorterSideAndRoundsHalfPixelsToEven) {
  ImagePreprocessingConfig config;
  config.resize_shorter_side = 36;
  config.crop_height = config.crop_width = 32;
  const ResizeAndCrop portrait = CentreCrop({151, 97}, config);  // 36 * 151 / 97 = 56.04
  EXPECT_EQ(portrait.resized.height, 56);
  EXPECT_EQ(portrait.resized.width, 36);
  EXPECT_EQ(portrait.top, 12);
  EXPECT_EQ(portrait.left, 2);
  EXPECT_EQ(CentreCrop({53, 140}, config).left, 32);  // 95 wide: 31.5 to even
  EXPECT_EQ(CentreCrop({120, 150}, config).left, 6);  // 45 wide: 6.5 to even
}

// An image of 65,535 x 1 pixels. Resized, it would have 4 billion pixels, but only its crop is computed.
TEST(CentreCrop, ExtremeShapesCostNoMoreThanTheirCrop) {
  const ImageSize image = {1, 65535};
  const std::vector<uint8_t> values = RandomValues(image, 3, 5);
  const ResizeAndCrop geometry = CentreCrop(image, ImagePreprocessingConfig());
  EXPECT_EQ(geometry.resized.width, int64_t{256} * 65535);
  EXPECT_EQ(Resized(values, image, 3, geometry).size(), 224U * 224 * 3);
}

}  // namespace longshort::models::resize_test
