#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/images/image_preprocessor.h"
#include "tests/base/status_matchers.h"
#include "tests/models/images/image_files.h"

namespace longshort::models::pixel_sequence_test {

using Words = std::vector<std::string>;

std::vector<int32_t> IdsOf(const absl::StatusOr<ClassifierItem>& item) {
  return item.ok() ? std::get<TokenItem>(*item).documents.front() : std::vector<int32_t>();
}

// All 256 grey values, as grey and as colours: each is its own id.
TEST(PixelSequence, AGreyValueIsItsId) {
  const auto preprocessor = MakePixelSequencePreprocessor({16, 16}, ImageLimits());
  std::vector<int32_t> ids(256);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<uint8_t> grey(256), colours(3 * 256);
  std::vector<float> floats(256);
  for (size_t i = 0; i < 256; ++i) {
    grey[i] = colours[3 * i] = colours[3 * i + 1] = colours[3 * i + 2] = static_cast<uint8_t>(i);
    floats[i] = static_cast<float>(i) / 255.0F;
  }
  EXPECT_EQ(IdsOf(preprocessor->Convert({16, 16, 1, absl::MakeConstSpan(grey)})), ids);
  EXPECT_EQ(IdsOf(preprocessor->Convert({16, 16, 3, absl::MakeConstSpan(colours)})), ids);
  EXPECT_EQ(IdsOf(preprocessor->Convert({16, 16, 1, absl::MakeConstSpan(floats)})), ids);
}

TEST(PixelSequence, ColoursBecomeGreyByTheirBrightness) {
  const auto preprocessor = MakePixelSequencePreprocessor({1, 4}, ImageLimits());
  const std::vector<uint8_t> pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
  // trunc(255.5 * 0.2989), of 0.5870, of 0.1140 and of 0.9999.
  EXPECT_THAT(IdsOf(preprocessor->Convert({1, 4, 3, absl::MakeConstSpan(pixels)})),
              testing::ElementsAre(76, 149, 29, 255));
}

TEST(PixelSequence, OtherSizesAreResizedToExactlyTheModels) {
  const auto preprocessor = MakePixelSequencePreprocessor({4, 6}, ImageLimits());
  const std::vector<uint8_t> pixels(30 * 20, 77);
  const std::vector<int32_t> ids = IdsOf(preprocessor->Convert({30, 20, 1, absl::MakeConstSpan(pixels)}));
  EXPECT_EQ(ids.size(), 24U);
  EXPECT_THAT(ids, testing::Each(77));
}

TEST(PixelSequence, AnEncodedImageIsItsPixels) {
  const auto preprocessor = MakePixelSequencePreprocessor({9, 13}, ImageLimits());
  const ExpectedImage grey = ReadExpectedImage("grey.png");
  std::vector<int32_t> ids;
  for (size_t i = 0; i < grey.values.size(); i += 3) ids.push_back(grey.values[i]);
  EXPECT_EQ(IdsOf(preprocessor->Decode(ReadImageFile("grey.png"))), ids);
}

TEST(PixelSequence, RefusesAnImageOfOnlyPadding) {
  const auto preprocessor = MakePixelSequencePreprocessor({2, 2}, ImageLimits());
  const std::vector<uint8_t> black(4);
  EXPECT_THAT(preprocessor->Convert({2, 2, 1, absl::MakeConstSpan(black)}), Refuses(Words{"all black"}));
}

}  // namespace longshort::models::pixel_sequence_test
