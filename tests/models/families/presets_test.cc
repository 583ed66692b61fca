// The published models, described: shared figures of the paper and of the official code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "models/families/family.h"

namespace longshort::models::presets_test {

ModelDescription DescribePreset(const std::string& name) {
  auto description = DescribeConfig(FindPreset(name), name);
  EXPECT_TRUE(description.ok()) << description.status();
  return *std::move(description);
}

struct Published {
  std::string preset;
  int64_t parameters;      // of the official code, or 0
  double mega_parameters;  // as printed
  double giga_multiply_adds;
  double tolerance;  // of the multiply-adds, relative

  friend void PrintTo(const Published& published, std::ostream* out) { *out << published.preset; }
};

std::string TestName(const testing::TestParamInfo<Published>& info) {
  std::string name = info.param.preset;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class PublishedFigures : public testing::TestWithParam<Published> {};

TEST_P(PublishedFigures, AreMet) {
  const Published& published = GetParam();
  const ModelDescription description = DescribePreset(published.preset);
  if (published.parameters > 0) {
    EXPECT_EQ(description.parameters(), published.parameters);
  }
  EXPECT_NEAR(static_cast<double>(description.parameters()) / 1e6, published.mega_parameters,
              0.01 * published.mega_parameters);
  EXPECT_NEAR(description.work() / 1e9, published.giga_multiply_adds,
              published.tolerance * published.giga_multiply_adds);
}

// Long Range Arena: "GFLOPs" of w, r = 8, 32; parameters of the official model.
INSTANTIATE_TEST_SUITE_P(LongRangeArena, PublishedFigures,
                         testing::Values(Published{"lra-listops", 249'418, 0.249, 0.20, 0.04},
                                         Published{"lra-text", 379'458, 0.379, 0.40, 0.04},
                                         Published{"lra-retrieval", 404'034, 0.404, 0.80, 0.04}),
                         TestName);

// 384 has larger bias tables than 224: 39.9 M, which the paper prints.
INSTANTIATE_TEST_SUITE_P(Vil, PublishedFigures,
                         testing::Values(Published{"vil-ls-medium-224", 39'799'423, 39.8, 8.7, 0.01},
                                         Published{"vil-ls-base-224", 55'834'363, 55.8, 13.4, 0.01},
                                         Published{"vil-ls-medium-384", 39'947'653, 39.9, 28.7, 0.01}),
                         TestName);

// The paper describes CvT*-LS so that it can be counted only to 0.6 % of the printed parameters.
INSTANTIATE_TEST_SUITE_P(Cvt, PublishedFigures,
                         testing::Values(Published{"cvt-ls-13-224", 20'185'080, 20.3, 4.9, 0.01},
                                         Published{"cvt-ls-17-224", 0, 23.7, 9.8, 0.01},
                                         Published{"cvt-ls-21-224", 0, 32.1, 7.9, 0.01},
                                         Published{"cvt-ls-21-384", 0, 32.1, 23.9, 0.01}),
                         TestName);

// What the figures below cannot be checked against: the paper prints 30.1 M parameters for 21S, fewer than its table of
// widths and depths gives, and for 448 pixels multiply-adds of another rank than it states.
TEST(CvtPresets, MeetTheCountOfTheConfigurationWhereThePaperContradictsItself) {
  const ModelDescription wide = DescribePreset("cvt-ls-21s-224");
  EXPECT_NEAR(static_cast<double>(wide.parameters()) / 1e6, 30.767, 0.0005);
  EXPECT_NEAR(wide.work() / 1e9, 11.3, 0.01 * 11.3);
  const ModelDescription large = DescribePreset("cvt-ls-21-448");
  EXPECT_NEAR(static_cast<double>(large.parameters()) / 1e6, 32.1, 0.01 * 32.1);
  EXPECT_NEAR(large.work() / 1e9, 34.86, 0.005);
}

TEST(CvtPresets, AreCountedAsByTheReferenceCounter) {
  // Batch norms counted 5 an element.
  EXPECT_NEAR(DescribePreset("cvt-ls-13-224").work() / 1e9, 4.948, 0.0005);
  EXPECT_NEAR(DescribePreset("cvt-ls-17-224").work() / 1e9, 9.787, 0.0005);
  EXPECT_NEAR(DescribePreset("cvt-ls-21-224").work() / 1e9, 7.881, 0.0005);
  EXPECT_NEAR(DescribePreset("cvt-ls-21s-224").work() / 1e9, 11.217, 0.0005);
  EXPECT_NEAR(DescribePreset("cvt-ls-21-384").work() / 1e9, 23.882, 0.0005);
}

TEST(Presets, AreInOrderAndFound) {
  EXPECT_GE(Presets().size(), 12);
  EXPECT_TRUE(std::is_sorted(Presets().begin(), Presets().end(),
                             [](const Preset& a, const Preset& b) { return a.name < b.name; }));
  for (const Preset& preset : Presets()) EXPECT_EQ(FindPreset(preset.name), preset.config);
  EXPECT_EQ(FindPreset("vil-ls-huge-224"), "");
}

TEST(Presets, EveryOneIsAConfigThatLoadsWould) {
  for (const Preset& preset : Presets()) {
    const auto description = DescribeConfig(preset.config, std::string(preset.name));
    EXPECT_TRUE(description.ok()) << description.status();
  }
}

}  // namespace longshort::models::presets_test
