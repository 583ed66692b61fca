#include "models/weights/image_preprocessing_config.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/base/status_matchers.h"

namespace longshort::models::image_preprocessing_config_test {

using Words = std::vector<std::string>;

JsonView Config(nlohmann::ordered_json preprocessing) {
  const nlohmann::ordered_json document = {{"preprocessing", std::move(preprocessing)}};
  return *JsonView::Parse(document.dump(), "config.json");
}

// The preprocessing of the models at 224, with one field changed.
JsonView With(const std::string& field, const nlohmann::ordered_json& value) {
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

TEST(ImagePreprocessingConfig, SaysWhoseInterpolationResizes) {
  EXPECT_FALSE(ToJson(ImagePreprocessingConfig()).contains("resize")) << "as before there was a choice";
  const std::vector<std::pair<nlohmann::ordered_json, ResizeMethod>> methods = {
      {{{"library", "pillow"}, {"filter", "bicubic"}}, ResizeMethod::kPillowBicubic},
      {{{"library", "opencv"}, {"filter", "nearest"}}, ResizeMethod::kOpenCvNearest},
      {{{"library", "opencv"}, {"filter", "linear"}}, ResizeMethod::kOpenCvLinear},
      {{{"library", "opencv"}, {"filter", "area"}}, ResizeMethod::kOpenCvArea},
      {{{"library", "opencv"}, {"filter", "cubic"}}, ResizeMethod::kOpenCvCubic}};
  for (const auto& [resize, method] : methods) {
    const auto image = ReadImagePreprocessing(With("resize", resize));
    ASSERT_THAT(image, IsOk());
    EXPECT_EQ(image->resize, method) << resize;
    EXPECT_EQ(*ReadImagePreprocessing(Config(ToJson(*image))), *image) << resize;
    const auto pixels = ReadPixelSequence(Config({{"height", 4}, {"width", 8}, {"resize", resize}}));
    ASSERT_THAT(pixels, IsOk());
    EXPECT_EQ(pixels->resize, method) << resize;
    EXPECT_EQ(*ReadPixelSequence(Config(ToJson(*pixels))), *pixels) << resize;
  }
}

TEST(ImagePreprocessingConfig, SaysWhetherImagesAreTurned) {
  EXPECT_EQ(ReadImagePreprocessing(Config(ToJson(ImagePreprocessingConfig())))->orientation, OrientationUse::kApply);
  EXPECT_FALSE(ToJson(ImagePreprocessingConfig()).contains("orientation"));
  for (const auto& [word, use] : {std::pair{"apply", OrientationUse::kApply}, {"ignore", OrientationUse::kIgnore}}) {
    const auto image = ReadImagePreprocessing(With("orientation", word));
    ASSERT_THAT(image, IsOk());
    EXPECT_EQ(image->orientation, use) << word;
    EXPECT_EQ(*ReadImagePreprocessing(Config(ToJson(*image))), *image) << word;
    const auto pixels = ReadPixelSequence(Config({{"height", 4}, {"width", 8}, {"orientation", word}}));
    ASSERT_THAT(pixels, IsOk());
    EXPECT_EQ(pixels->orientation, use) << word;
    EXPECT_EQ(*ReadPixelSequence(Config(ToJson(*pixels))), *pixels) << word;
  }
  EXPECT_THAT(ReadImagePreprocessing(With("orientation", "exif")),
              Refuses(Words{"orientation", "exif", "apply, ignore"}));
}

TEST(ImagePreprocessingConfig, NamesTheWrongPartOfResizeAndWhatIsAllowed) {
  const auto with = [](const char* library, const char* filter) {
    return ReadImagePreprocessing(With("resize", {{"library", library}, {"filter", filter}}));
  };
  EXPECT_THAT(with("torchvision", "cubic"),
              Refuses(Words{"preprocessing.resize.library is", "torchvision", "pillow", "opencv"}));
  EXPECT_THAT(with("opencv", "lanczos"),
              Refuses(Words{"preprocessing.resize.filter is", "lanczos", "nearest", "linear", "area", "cubic"}));
  EXPECT_THAT(with("pillow", "cubic"), Refuses(Words{"resize.filter is", "bicubic"}));
  EXPECT_THAT(ReadImagePreprocessing(With("resize", {{"library", "opencv"}})), Refuses(Words{"filter is missing"}));
  EXPECT_THAT(ReadImagePreprocessing(With("resize", "opencv")), Refuses(Words{"resize is", "must be an object"}));
  EXPECT_THAT(ReadImagePreprocessing(With("resize", {{"library", "opencv"}, {"filter", "area"}, {"a", 1}})),
              Refuses(Words{"unknown field 'a' of preprocessing.resize"}));
}

TEST(ImagePreprocessingConfig, NamesWhatIsOutOfRange) {
  EXPECT_THAT(ReadImagePreprocessing(With("crop_width", 0)),
              Refuses(Words{"config.json: preprocessing.crop_width is 0", "1..16384"}));
  EXPECT_THAT(ReadImagePreprocessing(With("resize_shorter_side", 223)),
              Refuses(Words{"resize_shorter_side is 223", "at least both sides of the crop, 224"}));
  EXPECT_THAT(ReadImagePreprocessing(With("mean", {0.5, 0.5})), Refuses(Words{"mean is", "three numbers"}));
  EXPECT_THAT(ReadImagePreprocessing(With("standard_deviation", {1, 1, 0})), Refuses(Words{"above 0"}));
  EXPECT_THAT(ReadImagePreprocessing(With("crop", 1)), Refuses(Words{"unknown field 'crop'"}));
  EXPECT_THAT(ReadPixelSequence(Config({{"height", 32}})), Refuses(Words{"width is missing"}));
}

}  // namespace longshort::models::image_preprocessing_config_test
