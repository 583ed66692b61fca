#include "models/weights/image_preprocessing_config.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"

namespace longshort {
namespace {

using Words = std::vector<std::string>;

JsonFields Config(nlohmann::ordered_json preprocessing) {
  const nlohmann::ordered_json document = {{"preprocessing", std::move(preprocessing)}};
  return *JsonFields::Parse(document.dump(), "config.json");
}

// The preprocessing of the models at 224, with one field changed.
JsonFields With(const std::string& field, const nlohmann::ordered_json& value) {
  nlohmann::ordered_json preprocessing = ToJson(ImagePreprocessingConfig());
  preprocessing[field] = value;
  return Config(std::move(preprocessing));
}

TEST(ImagePreprocessingConfig, ReadsWhatItWrites) {
  ImagePreprocessingConfig config;
  config.resize_shorter_side = 438;
  config.crop_height = 384;
  config.crop_width = 300;
  config.mean = {0.5, 0.25, 0.125};
  const auto read = ReadImagePreprocessing(Config(ToJson(config)));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, config);

  const auto pixels = ReadPixelSequence(Config(ToJson(PixelSequenceConfig{16, 64})));
  ASSERT_THAT(pixels, IsOk());
  EXPECT_EQ(*pixels, (PixelSequenceConfig{16, 64}));
}

TEST(ImagePreprocessingConfig, NamesWhatIsOutOfRange) {
  EXPECT_THAT(ReadImagePreprocessing(With("crop_width", 0)),
              Refuses(Words{"config.json: preprocessing: crop_width is '0'", "1..16384"}));
  EXPECT_THAT(ReadImagePreprocessing(With("resize_shorter_side", 223)),
              Refuses(Words{"resize_shorter_side is '223'", "at least both sides of the crop, 224"}));
  EXPECT_THAT(ReadImagePreprocessing(With("mean", {0.5, 0.5})), Refuses(Words{"mean is", "three numbers"}));
  EXPECT_THAT(ReadImagePreprocessing(With("standard_deviation", {1, 1, 0})), Refuses(Words{"above 0"}));
  EXPECT_THAT(ReadImagePreprocessing(With("crop", 1)), Refuses(Words{"unknown field 'crop'"}));
  EXPECT_THAT(ReadPixelSequence(Config({{"height", 32}})), Refuses(Words{"'width' is missing"}));
}

}  // namespace
}  // namespace longshort
