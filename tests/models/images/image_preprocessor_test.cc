#include "models/images/image_preprocessor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/decode_image.h"
#include "tests/base/status_matchers.h"
#include "tests/models/images/image_files.h"

namespace longshort::models::image_preprocessor_test {

using Words = std::vector<std::string>;

// A crop of 2 x 2 of images of 2 rows: nothing is resized.
ImagePreprocessingConfig SmallConfig() {
  ImagePreprocessingConfig config;
  config.resize_shorter_side = 2;
  config.crop_height = config.crop_width = 2;
  config.mean = {0.5, 0.25, 0.0};
  config.standard_deviation = {0.5, 0.25, 1.0};
  return config;
}

std::vector<float> ValuesOf(const absl::StatusOr<ClassifierItem>& item) {
  if (!item.ok()) return {};
  std::vector<float> values(std::get<ImageItem>(*item).size());
  std::get<ImageItem>(*item).WriteValues(values.data());
  return values;
}

TEST(ImagePreprocessor, NormalisesEachChannel) {
  const auto preprocessor = MakeImagePreprocessor(SmallConfig(), ImageLimits());
  const std::vector<uint8_t> pixels = {255, 0, 51, 0, 255, 0, 255, 255, 255, 0, 0, 0};
  const auto item = preprocessor->Convert({2, 2, 3, absl::MakeConstSpan(pixels)});
  ASSERT_THAT(item, IsOk());
  EXPECT_EQ(std::get<ImageItem>(*item).height, 2);
  EXPECT_EQ(std::get<ImageItem>(*item).width, 2);
  // [3, 2, 2]: (value - mean) / deviation.
  EXPECT_THAT(ValuesOf(item), testing::ElementsAre(1, -1, 1, -1, -1, 3, 3, -1, 0.2F, 0, 1, 0));
}

TEST(ImagePreprocessor, GreyCountsForAllChannels) {
  const auto preprocessor = MakeImagePreprocessor(SmallConfig(), ImageLimits());
  const std::vector<uint8_t> grey = {255, 0, 51, 102};
  const std::vector<uint8_t> colours = {255, 255, 255, 0, 0, 0, 51, 51, 51, 102, 102, 102};
  const auto of_grey = preprocessor->Convert({2, 2, 1, absl::MakeConstSpan(grey)});
  ASSERT_THAT(of_grey, IsOk());
  EXPECT_EQ(ValuesOf(of_grey), ValuesOf(preprocessor->Convert({2, 2, 3, absl::MakeConstSpan(colours)})));
}

TEST(ImagePreprocessor, FloatsAreTakenAsTheyAre) {
  const auto preprocessor = MakeImagePreprocessor(SmallConfig(), ImageLimits());
  const std::vector<float> grey = {0.0F, 1.0F, 0.3001F, 0.5F};
  const auto item = preprocessor->Convert({2, 2, 1, absl::MakeConstSpan(grey)});
  ASSERT_THAT(item, IsOk());
  // The third channel has mean 0 and deviation 1.
  const std::vector<float> values = ValuesOf(item);
  EXPECT_EQ(std::vector<float>(values.begin() + 8, values.end()), grey);
}

TEST(ImagePreprocessor, AnEncodedImageIsItsPixels) {
  const ImagePreprocessingConfig config{.resize_shorter_side = 8, .crop_height = 6, .crop_width = 7};
  const auto preprocessor = MakeImagePreprocessor(config, ImageLimits());
  const ExpectedImage pixels = ReadExpectedImage("orientation_6.png");
  const auto encoded = preprocessor->Decode(ReadImageFile("orientation_6.png"));
  ASSERT_THAT(encoded, IsOk());
  EXPECT_EQ(ValuesOf(encoded).size(), 3U * 6 * 7);
  EXPECT_EQ(ValuesOf(encoded),
            ValuesOf(preprocessor->Convert({pixels.height, pixels.width, 3, absl::MakeConstSpan(pixels.values)})));
  EXPECT_THAT(preprocessor->Decode("no image"), Refuses(Words{"not a JPEG"}));
}

// As evaluations that read only the pixels of a file.
TEST(ImagePreprocessor, TurnsNoImageIfTheModelIgnoresOrientations) {
  ImagePreprocessingConfig config{.resize_shorter_side = 8, .crop_height = 6, .crop_width = 7};
  const PixelSequenceConfig sequence{.height = 8, .width = 8, .orientation = OrientationUse::kIgnore};
  config.orientation = OrientationUse::kIgnore;
  const auto preprocessor = MakeImagePreprocessor(config, ImageLimits());
  const auto of_tokens = MakePixelSequencePreprocessor(sequence, ImageLimits());
  const std::string upright = ReadImageFile("orientation_1.jpg");
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const std::string turned = ReadImageFile("orientation_" + std::to_string(orientation) + ".jpg");
    EXPECT_EQ(ValuesOf(preprocessor->Decode(turned)), ValuesOf(preprocessor->Decode(upright))) << orientation;
    EXPECT_EQ(std::get<TokenItem>(*of_tokens->Decode(turned)).documents,
              std::get<TokenItem>(*of_tokens->Decode(upright)).documents);
  }
  const auto by_default = MakePixelSequencePreprocessor({.height = 8, .width = 8}, ImageLimits());
  EXPECT_NE(std::get<TokenItem>(*by_default->Decode(ReadImageFile("orientation_6.jpg"))).documents,
            std::get<TokenItem>(*of_tokens->Decode(upright)).documents);
}

TEST(ImagePreprocessor, RefusesPixelsThatAreNotAnImage) {
  const auto preprocessor = MakeImagePreprocessor(SmallConfig(), {.max_pixels = 6});
  const std::vector<uint8_t> pixels(24);
  const auto convert = [&](int64_t height, int64_t width, int64_t channels, size_t count) {
    return preprocessor->Convert({height, width, channels, absl::MakeConstSpan(pixels.data(), count)});
  };
  EXPECT_THAT(convert(2, 3, 3, 18), IsOk());
  EXPECT_THAT(convert(2, 3, 3, 17), Refuses(Words{"17 values", "2 x 3 x 3", "18"}));
  EXPECT_THAT(convert(2, 3, 4, 24), Refuses(Words{"4 channels", "1 or 3"}));
  EXPECT_THAT(convert(2, 4, 3, 24), Refuses(Words{"4 x 2 = 8", "6"}));
  EXPECT_THAT(convert(0, 4, 3, 0), Refuses(Words{"no pixels"}));
  EXPECT_THAT(convert(-2, 3, 1, 6), Refuses(Words{"no pixels"}));
  EXPECT_THAT(convert(int64_t{1} << 62, 4, 1, 0), Refuses(Words{"per side"}));
}

// 255 * (1 / 255) in float arithmetic is 1.0000001.
TEST(ImagePreprocessor, TakesFloatsThatRoundingMovedBeyondTheRange) {
  const auto preprocessor = MakeImagePreprocessor(SmallConfig(), ImageLimits());
  const std::vector<float> moved = {-1e-6F, 1.0000001F, 0.3001F, 1.000009F}, exact = {0.0F, 1.0F, 0.3001F, 1.0F};
  const auto item = preprocessor->Convert({2, 2, 1, absl::MakeConstSpan(moved)});
  ASSERT_THAT(item, IsOk());
  EXPECT_EQ(ValuesOf(item), ValuesOf(preprocessor->Convert({2, 2, 1, absl::MakeConstSpan(exact)})));
}

TEST(ImagePreprocessor, PrintsAllDigitsOfAFloatThatItRefuses) {
  const auto preprocessor = MakeImagePreprocessor(SmallConfig(), ImageLimits());
  for (const auto& [wrong, text] : {std::pair{1.00002F, "is 1.00002;"}, {-0.0000201F, "is -2.01e-05;"}}) {
    const std::vector<float> pixels = {wrong, 1.0F, 0.0F, 0.5F};
    EXPECT_THAT(preprocessor->Convert({2, 2, 1, absl::MakeConstSpan(pixels)}), Refuses(Words{"value 0", text}));
  }
}

// Bytes are rounded after each pass of resizing, floats are not. Clients divide by 255, or multiply by 1 / 255.
TEST(ImagePreprocessor, BytesDividedBy255AreThoseBytes) {
  const ExpectedImage pixels = ReadExpectedImage("colours.png");
  const auto sequence = MakePixelSequencePreprocessor({.height = 5, .width = 6}, ImageLimits());
  const auto centre = MakeImagePreprocessor({.resize_shorter_side = 7, .crop_height = 6, .crop_width = 5}, {});
  const auto values_of = [&](const auto& values) {
    const RawImage image{pixels.height, pixels.width, 3, absl::MakeConstSpan(values)};
    return std::pair{ValuesOf(centre->Convert(image)), std::get<TokenItem>(*sequence->Convert(image)).documents};
  };
  const auto by_bytes = values_of(pixels.values);
  std::vector<float> divided(pixels.values.begin(), pixels.values.end()), multiplied = divided;
  for (float& value : divided) value /= 255.0F;
  for (float& value : multiplied) value *= 1.0F / 255.0F;
  EXPECT_EQ(values_of(divided), by_bytes);
  EXPECT_EQ(values_of(multiplied), by_bytes);
  divided[20] = 0.3001F;
  EXPECT_NE(values_of(divided).first, by_bytes.first) << "floats are not rounded";
}

TEST(ImagePreprocessor, RefusesFloatsThatAreNoPixels) {
  const auto preprocessor = MakeImagePreprocessor(SmallConfig(), ImageLimits());
  for (const float wrong : {-0.01F, 1.01F, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> pixels = {0.0F, 1.0F, wrong, 0.5F};
    EXPECT_THAT(preprocessor->Convert({2, 2, 1, absl::MakeConstSpan(pixels)}), Refuses(Words{"value 2", "[0, 1]"}));
  }
}

// The item of all pixels of a file.
absl::StatusOr<ClassifierItem> ItemOfAllPixels(const ImagePreprocessor& preprocessor, const std::string& file) {
  const cv::Mat pixels = *DecodeImage(file, ImageLimits());
  return preprocessor.Convert({pixels.rows, pixels.cols, 3, absl::MakeConstSpan(pixels.data, 3 * pixels.total())});
}

float LargestDifference(const std::vector<float>& one, const std::vector<float>& other) {
  EXPECT_EQ(one.size(), other.size());
  float largest = 0;
  for (size_t i = 0; i < one.size(); ++i) largest = std::max(largest, std::abs(one[i] - other[i]));
  return largest;
}

// 2001 x 2403 pixels. A quarter of its sides is at least eight times 60 x 72, but no half is of 126 x 151.
TEST(ImagePreprocessor, DecodesAFractionOfAnImageThatIsFarLargerThanTheInput) {
  ImagePreprocessingConfig small{.resize_shorter_side = 60, .crop_height = 60, .crop_width = 60};
  small.mean = {0, 0, 0};
  small.standard_deviation = {1, 1, 1};
  ImagePreprocessingConfig larger = small;
  larger.resize_shorter_side = 126;
  for (const std::string name : {"large/turned.jpg", "large/upright.webp"}) {
    SCOPED_TRACE(name);
    const std::string file = ReadImageFile(name);
    const auto header = ReadImageHeader(file, ImageLimits());
    ASSERT_THAT(header, IsOk());
    const auto decoded = DecodeImage(file, *header, {.enough = ImageSize{480, 480}});
    ASSERT_THAT(decoded, IsOk());
    const bool turned = name == "large/turned.jpg";
    EXPECT_EQ(decoded->pixels.size(), turned ? cv::Size(601, 501) : cv::Size(501, 601));
    EXPECT_EQ(decoded->full_size, (turned ? ImageSize{2001, 2403} : ImageSize{2403, 2001}));

    const auto scaled = MakeImagePreprocessor(small, ImageLimits());
    const float difference =
        LargestDifference(ValuesOf(scaled->Decode(file)), ValuesOf(ItemOfAllPixels(*scaled, file)));
    // Rounding, twice; libjpeg also interpolates a JPEG's coarser chroma differently when it scales.
    EXPECT_LE(difference, (turned ? 4.001F : 2.001F) / 255);
    EXPECT_GT(difference, 0) << "it was scaled";
    const auto whole = MakeImagePreprocessor(larger, ImageLimits());
    EXPECT_EQ(ValuesOf(whole->Decode(file)), ValuesOf(ItemOfAllPixels(*whole, file)));
    ImagePreprocessingConfig nearest = small;
    nearest.resize = ResizeMethod::kOpenCvNearest;
    const auto by_nearest = MakeImagePreprocessor(nearest, ImageLimits());
    EXPECT_EQ(ValuesOf(by_nearest->Decode(file)), ValuesOf(ItemOfAllPixels(*by_nearest, file)));
  }
}

TEST(ImagePreprocessor, RefusesByTheHeader) {
  const std::string file = ReadImageFile("colours.png");
  const auto header = MakeImagePreprocessor({}, {.max_pixels = 117})->ReadHeader(file);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->size.pixels(), 13 * 9);
  EXPECT_THAT(MakeImagePreprocessor({}, {.max_pixels = 116})->ReadHeader(file), Refuses(Words{"13 x 9 = 117", "116"}));
}

// A strip becomes as high as the crop. By Pillow's arithmetic only the crop is computed; OpenCV would make all of it.
TEST(ImagePreprocessor, RefusesWhatOpenCvWouldResizeBeyondTheLimit) {
  ImagePreprocessingConfig config{.resize_shorter_side = 8, .crop_height = 8, .crop_width = 8};
  const std::vector<uint8_t> strip(100, 50);
  const ImageLimits limits{.max_pixels = 100};
  EXPECT_THAT(MakeImagePreprocessor(config, limits)->Convert({1, 100, 1, absl::MakeConstSpan(strip)}), IsOk());
  config.resize = ResizeMethod::kOpenCvArea;
  EXPECT_THAT(MakeImagePreprocessor(config, limits)->Convert({1, 100, 1, absl::MakeConstSpan(strip)}),
              Refuses(Words{"resized to 800 x 8 = 6400", "100"}));
}

}  // namespace longshort::models::image_preprocessor_test
