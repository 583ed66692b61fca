#include "models/families/cvt/cvt_config.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/base/status_matchers.h"

namespace longshort::models::cvt_config_test {

using Words = std::vector<std::string>;

CvtConfig ThreeStages() {
  CvtConfig config;
  config.stages = {{},
                   {.width = 192, .heads = 3, .embedding_kernel = 3, .embedding_stride = 2, .embedding_padding = 1},
                   {.width = 384, .heads = 6, .embedding_kernel = 3, .embedding_stride = 2, .embedding_padding = 1}};
  return config;
}

// The config.json of ThreeStages() after `change`.
absl::StatusOr<CvtConfig> ParseChanged(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json document = nlohmann::json::parse(ToJson(ThreeStages()));
  change(document);
  return ParseCvtConfig(document.dump(), "config.json");
}

absl::StatusOr<CvtConfig> ParseWith(const std::string& field, const nlohmann::json& value) {
  return ParseChanged([&](nlohmann::json& document) { document[field] = value; });
}

TEST(CvtConfig, ReadsWhatItWrote) {
  CvtConfig config = ThreeStages();
  config.stages[1].projection_rank = 7;
  config.shared_dual_norm = false;
  config.dynamic_projection_kernel = 5;
  config.weight_standardization_epsilon = 1e-4;
  const auto parsed = ParseCvtConfig(ToJson(config), "config.json");
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(*parsed, config);
}

TEST(CvtConfig, RequiresEveryFieldAndTakesNoOther) {
  const nlohmann::json document = nlohmann::json::parse(ToJson(ThreeStages()));
  EXPECT_EQ(document.size(), 19);
  for (const auto& [field, value] : document.items()) {
    EXPECT_THAT(ParseChanged([&](nlohmann::json& changed) { changed.erase(field); }),
                Refuses(Words{"config.json", field}));
  }
  EXPECT_THAT(ParseWith("mlp_ratio", 4), Refuses(Words{"mlp_ratio", "unknown"}));
  EXPECT_THAT(ParseWith("architecture", "vil"), Refuses(Words{"architecture"}));
}

TEST(CvtConfig, EveryStageHasOneNumberInEachList) {
  EXPECT_THAT(ParseWith("window_sizes", {8, 4}), Refuses(Words{"window_sizes", "2 numbers"}));
  EXPECT_THAT(ParseWith("stage_widths", nlohmann::json::array()), Refuses(Words{"stage_widths", "0 numbers"}));
  EXPECT_THAT(ParseWith("stage_widths", std::vector<int>(1000, 64)), Refuses(Words{"stage_widths", "1000 numbers"}));
}

TEST(CvtConfig, NamesTheFieldThatIsOutOfRange) {
  EXPECT_THAT(ParseWith("stage_widths", {64, 190, 384}), Refuses(Words{"stage 2", "190", "multiple", "3"}));
  EXPECT_THAT(ParseWith("projection_ranks", {0, 1, 1}), Refuses(Words{"stage 1", "projection_ranks is 0"}));
  EXPECT_THAT(ParseWith("embedding_paddings", {7, 1, 1}), Refuses(Words{"embedding_paddings is 7", "7"}));
  EXPECT_THAT(ParseWith("projection_kernel", 4), Refuses(Words{"projection_kernel is 4", "odd"}));
  EXPECT_THAT(ParseWith("dynamic_projection_kernel", 2), Refuses(Words{"dynamic_projection_kernel is 2", "odd"}));
  EXPECT_THAT(ParseWith("batch_norm_epsilon", 0.0), Refuses(Words{"batch_norm_epsilon is 0"}));
  EXPECT_THAT(ParseWith("channels", 1), Refuses(Words{"channels is 1"}));
}

TEST(CvtConfig, RefusesImagesThatLeaveNoTokenOrTooManyScores) {
  EXPECT_THAT(ParseWith("embedding_kernels", {7, 3, 100}), Refuses(Words{"crop_height", "stage 3"}));
  const auto huge = ParseChanged([](nlohmann::json& document) {
    document["window_sizes"] = {1024, 4, 2};
    document["preprocessing"]["resize_shorter_side"] = 4096;
    document["preprocessing"]["crop_height"] = 4096;
    document["preprocessing"]["crop_width"] = 4096;
  });
  EXPECT_THAT(huge, Refuses(Words{"stage 1", "scores"}));
}

TEST(CvtStage, EmbedsAsAConvolutionDoes) {
  EXPECT_EQ(CvtStage{}.EmbeddedLength(224), 56);  // (224 + 4 - 7) / 4 + 1
  EXPECT_EQ(CvtStage{}.EmbeddedLength(3), 1);
  EXPECT_EQ(CvtStage{}.EmbeddedLength(2), 0);
}

}  // namespace longshort::models::cvt_config_test
