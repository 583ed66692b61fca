#include "models/families/vil/vil_config.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/base/status_matchers.h"

namespace longshort::models::vil_config_test {

using Words = std::vector<std::string>;

// Grids of 56, 28, 14 and 7 patches.
constexpr const char* kMedium =
    "l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_l2,h3,d192,n4,s1,g1,p2,f7,a0,r8_l3,h6,d384,n16,s0,g1,p2,f7,a0,r8_"
    "l4,h12,d768,n1,s0,g0,p2,f7,a0,r8";

VilConfig Medium() {
  VilConfig config;
  config.stages = *ParseVilStages(kMedium, "medium");
  return config;
}

absl::StatusOr<VilConfig> ParseWith(const std::string& field, const nlohmann::json& value) {
  nlohmann::json document = nlohmann::json::parse(ToJson(Medium()));
  document[field] = value;
  return ParseVilConfig(document.dump(), "some/config.json");
}

// An image of `pixels` on both sides, with the preprocessing that makes it.
absl::Status Check(const std::string& stages, int64_t pixels) {
  VilConfig config;
  config.stages = *ParseVilStages(stages, "stages");
  config.image_size = config.preprocessing.crop_height = config.preprocessing.crop_width = pixels;
  return CheckVilConfig(config, "f");
}

TEST(VilConfig, ReadsTheNamesThatTheConverterWrites) {
  const auto config = ParseVilConfig(
      R"({"architecture": "vil", "stages": "l1,n2_l2_l3,s0", "image_size": 56, "channels": 3, "classes": 13,
          "embedding_norm": false, "average_pooling": true,
          "preprocessing": {"resize_shorter_side": 64, "crop_height": 56, "crop_width": 56, "mean": [0.5, 0.25, 0],
                            "standard_deviation": [1, 2, 0.5]}})",
      "config.json");
  ASSERT_THAT(config, IsOk());
  VilConfig expected;
  expected.stages = {VilStage{.number = 1, .pairs = 2}, VilStage{.number = 2}, VilStage{.number = 3, .sparse = false}};
  expected.image_size = 56;
  expected.classes = 13;
  expected.embedding_norm = false;
  expected.average_pooling = true;
  expected.preprocessing = {.resize_shorter_side = 64,
                            .crop_height = 56,
                            .crop_width = 56,
                            .mean = {0.5, 0.25, 0},
                            .standard_deviation = {1, 2, 0.5}};
  EXPECT_EQ(*config, expected);
}

TEST(VilConfig, WhatIsWrittenIsReadBack) {
  VilConfig config = Medium();
  config.classes = 21841;
  config.average_pooling = true;
  const auto parsed = ParseVilConfig(ToJson(config), "f");
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(*parsed, config);
}

TEST(VilConfig, EveryFieldIsRequiredAndHasOneType) {
  const nlohmann::json whole = nlohmann::json::parse(ToJson(Medium()));
  for (const auto& field : whole.items()) {
    nlohmann::json document = whole;
    document.erase(field.key());
    EXPECT_THAT(ParseVilConfig(document.dump(), "some/config.json"),
                Refuses(Words{"some/config.json", field.key() + " is missing"}));
    for (const nlohmann::json& wrong : {nlohmann::json(nullptr), nlohmann::json(2.5), nlohmann::json::array({1})}) {
      EXPECT_THAT(ParseWith(field.key(), wrong), Refuses(Words{"some/config.json", field.key() + " is "}));
    }
  }
  EXPECT_THAT(ParseWith("depth", 3), Refuses(Words{"some/config.json", "unknown field 'depth'", "embedding_norm"}));
  EXPECT_THAT(ParseWith("architecture", "cvt"), Refuses(Words{"architecture is 'cvt'"}));
}

TEST(VilConfig, NamesAValueOutOfRangeWithItsLimits) {
  EXPECT_THAT(ParseWith("image_size", 0), Refuses(Words{"image_size is 0; it must be in 1..4096"}));
  EXPECT_THAT(ParseWith("image_size", 4097), Refuses(Words{"image_size is 4097"}));
  EXPECT_THAT(ParseWith("classes", 0), Refuses(Words{"classes is 0"}));
  // Preprocessing makes red, green and blue.
  EXPECT_THAT(ParseWith("channels", 1), Refuses(Words{"channels is 1; it must be in 3..3"}));
}

TEST(VilConfig, NamesTheStageThatCannotBeRead) {
  EXPECT_THAT(ParseWith("stages", "l1_l2,h5_l3"),
              Refuses(Words{"some/config.json: stages: stage 2: d is 192", "h, 5"}));
}

TEST(VilConfig, EveryStageDropsWhatRemains) {
  VilConfig config;
  // 67 = 16 * 4 + 3, 16 = 5 * 3 + 1, 5 = 2 * 2 + 1
  config.stages = *ParseVilStages("l1,p4_l2,p3_l3,p2", "f");
  config.image_size = 67;
  EXPECT_EQ(config.GridSide(0), 16);
  EXPECT_EQ(config.GridSide(1), 5);
  EXPECT_EQ(config.GridSide(2), 2);
}

TEST(VilConfig, AStageKeepsAPatch) {
  EXPECT_THAT(Check("l1,f1_l2,f1_l3,f1", 8), IsOk());
  EXPECT_THAT(Check("l1,f1_l2,f1_l3,f1", 7), Refuses(Words{"f: stages: stage 3: p is 2, but only 1 remains"}));
}

// The official code has no window padding.
TEST(VilConfig, WindowsDivideTheGridOfASparseStage) {
  EXPECT_THAT(ParseWith("stages", "l1,p4,f7_l2,f5_l3,s0"),
              Refuses(Words{"some/config.json: stages: stage 2: f is 5", "28 x 28 patches"}));
  EXPECT_THAT(ParseWith("stages", "l1,p4,f7_l2,f28_l3,s0,f5"), IsOk());
  // Without pairs there is no attention.
  EXPECT_THAT(ParseWith("stages", "l1,p4,f7_l2,f5,n0_l3,s0"), IsOk());
}

TEST(VilConfig, ImagesAreCroppedToTheSizeOfTheModel) {
  EXPECT_THAT(ParseWith("image_size", 448), Refuses(Words{"preprocessing crops to 224 x 224", "image_size, 448"}));
}

TEST(VilConfig, PoolsAllTokensWithoutAGlobalTokenOrOnRequest) {
  VilConfig config = Medium();
  EXPECT_TRUE(config.PoolsAllTokens());  // g0
  config.stages.back().global_tokens = 1;
  EXPECT_FALSE(config.PoolsAllTokens());
  config.average_pooling = true;
  EXPECT_TRUE(config.PoolsAllTokens());
}

TEST(VilConfig, TakesThePublishedModels) {
  EXPECT_THAT(CheckVilConfig(Medium(), "f"), IsOk());
  std::string windows_of_8 = kMedium;
  for (size_t at = 0; (at = windows_of_8.find("f7", at)) != std::string::npos;) windows_of_8[at + 1] = '8';
  EXPECT_THAT(Check(windows_of_8, 384), IsOk());
}

// Full attention over 1024 x 1024 patches: 3 * (2^20 + 1)^2 scores.
TEST(VilConfig, RefusesAttentionThatExhaustsMemory) {
  EXPECT_THAT(Check("l1,s0,p4_l2_l3", 4096), Refuses(Words{"stage 1: its attention has 3298541174787 scores"}));
  EXPECT_THAT(Check("l1,f1024,p4_l2,n0_l3,n0", 4096), Refuses(Words{"stage 1", "limit is 1073741824"}));
}

}  // namespace longshort::models::vil_config_test
