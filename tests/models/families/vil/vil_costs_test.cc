#include <string>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/family.h"
#include "models/families/vil/vil_config.h"

namespace longshort::models::vil_costs_test {

// The published models: windows of f x f patches, n pairs in each of the four stages.
VilConfig Published(int64_t image_size, int64_t f, int64_t n2, int64_t n3) {
  VilConfig config;
  config.stages = *ParseVilStages(absl::StrFormat("l1,h3,d96,n1,s1,g1,p4,f%d,a0,r8_l2,h3,d192,n%d,s1,g1,p2,f%d,a0,r8_"
                                                  "l3,h6,d384,n%d,s0,g1,p2,f7,a0,r8_l4,h12,d768,n1,s0,g0,p2,f7,a0,r8",
                                                  f, n2, f, n3),
                                  "published");
  config.image_size = image_size;
  return config;
}

VilConfig Medium224() { return Published(224, 7, 4, 16); }
VilConfig Base224() { return Published(224, 7, 8, 24); }
VilConfig Medium384() { return Published(384, 8, 4, 16); }

StageCost Sum(const VilConfig& config) {
  StageCost sum;
  for (const StageCost& cost : VilCosts(config)) {
    sum.parameters += cost.parameters;
    sum.multiply_adds += cost.multiply_adds;
    sum.normed_elements += cost.normed_elements;
  }
  return sum;
}

TEST(VilCosts, CountTheParametersOfThePublishedModels) {
  EXPECT_EQ(Sum(Medium224()).parameters, 39'799'423);
  EXPECT_EQ(Sum(Base224()).parameters, 55'834'363);
  EXPECT_EQ(Sum(Medium384()).parameters, 39'947'653);
}

// Of each part, and those of all parts together are those of all tensors.
TEST(VilCosts, CountEveryParameterOnce) {
  const VilConfig config = Medium224();
  const auto costs = VilCosts(config);
  ASSERT_EQ(costs.size(), 5);
  EXPECT_EQ(costs[0].name, "stage 1");
  EXPECT_EQ(costs[4].name, "head");
  EXPECT_EQ(costs[4].parameters, 2 * 768 + 1000 * 768 + 1000);
  EXPECT_EQ(Sum(config).parameters, CountParameters(VilTensors(config)));
}

// 8.7, 13.4 and 28.7 billion multiply-adds, layer norms counted as fvcore does: within 1 %.
TEST(VilCosts, CountTheMultiplyAddsOfThePublishedModels) {
  const auto billions = [](const VilConfig& config) {
    const StageCost sum = Sum(config);
    return (sum.multiply_adds + StageCost::kPerNormElement * sum.normed_elements) / 1e9;
  };
  EXPECT_NEAR(billions(Medium224()), 8.7, 0.087);
  EXPECT_NEAR(billions(Base224()), 13.4, 0.134);
  EXPECT_NEAR(billions(Medium384()), 28.7, 0.287);
  // Those of the matrix products alone, measured with the official model.
  EXPECT_NEAR(Sum(Medium224()).multiply_adds / 1e9, 8.69, 0.005);
  EXPECT_NEAR(Sum(Base224()).multiply_adds / 1e9, 13.34, 0.005);
  EXPECT_NEAR(Sum(Medium384()).multiply_adds / 1e9, 28.64, 0.01);
}

// A network small enough to count by hand: an image of 8 x 8 pixels, grids of 4 x 4, 2 x 2 and 1 patches.
TEST(VilCosts, CountWhatASmallNetworkMultiplies) {
  VilConfig config;
  config.stages = *ParseVilStages("l1,h1,d2,n1,s1,g1,p2,f2,a1,r3_l2,h1,d2,n0,s1,g0,p2,f1,a1_l3,h1,d2,n2,s0,g1,p2", "f");
  config.image_size = 8;
  config.classes = 5;
  const auto costs = VilCosts(config);
  const int64_t embedding = 16 * 2 * (3 * 2 * 2), qkv_and_proj = 17 * 2 * 8, feed_forward = 17 * 2 * 16;
  const int64_t landmarks = 16 * 2 * 3 + 2 * (3 * 16 * 2);  // logits; keys and values
  const int64_t patches = 2 * (16 * (3 + 4 * 4 + 1) * 2);   // scores and sums over landmarks, window and token
  const int64_t global_token = 2 * (17 * 2);                // scores and sum over itself and the patches
  EXPECT_EQ(costs[0].multiply_adds, embedding + qkv_and_proj + feed_forward + landmarks + patches + global_token);
  EXPECT_EQ(costs[0].normed_elements, 16 * 2 + 2 * (17 * 2) + 2 * (17 + 3) * 2);
  EXPECT_EQ(costs[1].multiply_adds, 4 * 2 * (2 * 2 * 2));
  EXPECT_EQ(costs[2].multiply_adds, 1 * 2 * (2 * 2 * 2) + 2 * (2 * 2 * 8 + 2 * 2 * 16 + 2 * (2 * 2 * 2)));
  EXPECT_EQ(costs[3].multiply_adds, 2 * 5);
  EXPECT_EQ(costs[3].normed_elements, 2);  // the global token alone is normed
}

}  // namespace longshort::models::vil_costs_test
