#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/vil/vil_config.h"

namespace longshort::models::vil_tensors_test {

using ::testing::ElementsAre;

std::map<std::string, std::vector<int64_t>> ShapesOf(const std::string& stages, int64_t image_size,
                                                     bool embedding_norm = true) {
  VilConfig config;
  config.stages = *ParseVilStages(stages, "stages");
  config.image_size = image_size;
  config.classes = 10;
  config.embedding_norm = embedding_norm;
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const TensorShape& tensor : VilTensors(config)) shapes[tensor.name] = tensor.shape;
  return shapes;
}

// Grids of 16, 8 and 4 patches.
TEST(VilTensors, HaveTheOfficialNamesAndShapes) {
  const auto shapes =
      ShapesOf("l1,h2,d16,n1,s1,g1,p2,f4,a0,r8_l2,h2,d24,n2,s1,g1,p2,f4,a1,r0_l3,h4,d32,n1,s0,g2,p2,a0", 32);
  EXPECT_THAT(shapes.at("layer1.0.proj.weight"), ElementsAre(16, 3, 2, 2));
  EXPECT_THAT(shapes.at("layer2.0.proj.weight"), ElementsAre(24, 16, 2, 2));
  EXPECT_THAT(shapes.at("layer2.0.norm_embed.bias"), ElementsAre(24));
  EXPECT_THAT(shapes.at("layer3.0.cls_token"), ElementsAre(1, 2, 32));
  EXPECT_THAT(shapes.at("layer2.0.cls_pos_embed"), ElementsAre(1, 1, 24));
  EXPECT_THAT(shapes.at("layer2.0.x_pos_embed"), ElementsAre(1, 8, 12));
  EXPECT_THAT(shapes.at("layer2.0.y_pos_embed"), ElementsAre(1, 8, 12));
  EXPECT_THAT(shapes.at("layer1.1.attn.qkv.weight"), ElementsAre(48, 16));
  EXPECT_THAT(shapes.at("layer1.1.attn.to_dynamic_projection.weight"), ElementsAre(16, 16));  // 2 heads * rank 8
  EXPECT_THAT(shapes.at("layer2.3.attn.dual_ln_full.weight"), ElementsAre(24));
  EXPECT_THAT(shapes.at("layer1.1.attn.local_relative_position_bias_table"), ElementsAre(2 * 5 * 9 + 1, 2));
  EXPECT_THAT(shapes.at("layer3.1.attn.local_relative_position_bias_table"), ElementsAre(49, 4));
  EXPECT_THAT(shapes.at("layer3.1.attn.g2l_relative_position_bias"), ElementsAre(2, 4, 2));
  EXPECT_THAT(shapes.at("layer3.1.attn.g2g_relative_position_bias"), ElementsAre(4, 2, 2));
  EXPECT_THAT(shapes.at("layer2.4.mlp.fc1.weight"), ElementsAre(96, 24));
  EXPECT_THAT(shapes.at("layer2.4.mlp.fc2.weight"), ElementsAre(24, 96));
  EXPECT_THAT(shapes.at("norm.weight"), ElementsAre(32));
  EXPECT_THAT(shapes.at("head.weight"), ElementsAre(10, 32));
  // Embedding, then attention and feed-forward, of each stage.
  EXPECT_EQ(shapes.size(), (5 + 13 + 6) + (8 + 2 * (10 + 6)) + (5 + 9 + 6) + 4);
}

TEST(VilTensors, WhatAStageDoesWithoutIsNotThere) {
  const auto shapes = ShapesOf("l1,g0,a1,r0_l2,a0,r0_l3,s0,g0,a0", 56, /*embedding_norm=*/false);
  for (const std::string name : {"layer1.0.norm_embed.weight", "layer1.0.cls_token", "layer1.0.cls_pos_embed",
                                 "layer2.0.x_pos_embed", "layer1.1.attn.to_dynamic_projection.weight",
                                 "layer1.1.attn.local_relative_position_bias_table", "layer3.1.attn.dual_ln_dp.weight",
                                 "layer3.1.attn.g2l_relative_position_bias", "layer2.1.attn.relative_position_index"}) {
    EXPECT_EQ(shapes.count(name), 0) << name;
  }
  // The DualLN of landmarks is there without landmarks.
  EXPECT_EQ(shapes.count("layer1.1.attn.dual_ln_dp.weight"), 1);
}

TEST(VilTensors, TableOfRelativePositions) {
  EXPECT_EQ(WindowBiasRows(1), 1);
  EXPECT_EQ(WindowBiasRows(7), 253);
  EXPECT_EQ(WindowBiasRows(8), 375);
}

}  // namespace longshort::models::vil_tensors_test
