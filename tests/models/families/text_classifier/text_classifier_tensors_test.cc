#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_classifier_config.h"

namespace longshort::models::text_classifier_tensors_test {

using ::testing::ElementsAre;

TextClassifierConfig SmallConfig() {
  TextClassifierConfig config;
  config.model_width = 6;
  config.heads = 3;
  config.feed_forward_width = 5;
  config.projection_rank = 2;
  config.vocabulary_size = 7;
  config.max_sequence_length = 11;
  config.classes = 4;
  return config;
}

std::map<std::string, std::vector<int64_t>> ShapesOf(const TextClassifierConfig& config) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const TensorShape& tensor : TextClassifierTensors(config)) shapes[tensor.name] = tensor.shape;
  return shapes;
}

TEST(TextClassifierTensors, HaveTheOfficialNamesAndShapes) {
  const auto shapes = ShapesOf(SmallConfig());
  EXPECT_THAT(shapes.at("model.embeddings.word_embeddings.weight"), ElementsAre(7, 6));
  EXPECT_THAT(shapes.at("model.embeddings.position_embeddings.weight"), ElementsAre(11, 6));
  EXPECT_THAT(shapes.at("model.cls_embed"), ElementsAre(1, 1, 6));
  EXPECT_THAT(shapes.at("model.transformer_1.mha.W_o.weight"), ElementsAre(6, 6));
  EXPECT_THAT(shapes.at("model.transformer_1.mha.dual_ln_s.bias"), ElementsAre(6));
  EXPECT_THAT(shapes.at("model.transformer_0.mha.dconv_fc.weight"), ElementsAre(6, 6));  // 3 heads * rank 2
  EXPECT_THAT(shapes.at("model.transformer_0.mlpblock.0.weight"), ElementsAre(5, 6));
  EXPECT_THAT(shapes.at("model.transformer_0.mlpblock.3.weight"), ElementsAre(6, 5));
  EXPECT_THAT(shapes.at("seq_classifer.mlpblock.0.weight"), ElementsAre(5, 6));
  EXPECT_THAT(shapes.at("seq_classifer.mlpblock.2.weight"), ElementsAre(4, 5));
  EXPECT_EQ(shapes.count("model.transformer_2.norm1.weight"), 0);
  EXPECT_EQ(shapes.count("model.transformer_0.mha.conv.weight"), 0);
}

TEST(TextClassifierTensors, SwitchesAddAndRemoveTensors) {
  TextClassifierConfig config = SmallConfig();
  config.cls = ClsKind::kVocabulary;
  config.value_convolution = 5;
  config.projection_rank = 0;
  config.tied_layers = true;
  config.documents = 2;
  const auto shapes = ShapesOf(config);
  EXPECT_EQ(shapes.count("model.cls_embed"), 0);
  EXPECT_EQ(shapes.count("model.transformer.mha.dconv_fc.weight"), 0);  // it has no elements
  EXPECT_EQ(shapes.count("model.transformer_0.norm1.weight"), 0);
  EXPECT_THAT(shapes.at("model.transformer.mha.conv.weight"), ElementsAre(3, 1, 5, 1));
  EXPECT_THAT(shapes.at("seq_classifer.mlpblock.0.weight"), ElementsAre(5, 4 * 6));
}

TEST(TextClassifierTensors, AnEncoderHasRobertasTensors) {
  TextClassifierConfig config = SmallConfig();
  config.cls = ClsKind::kFirstToken;
  config.layer_norm = LayerNormPlace::kAfter;
  config.dual_norm = false;
  config.projection_rank = 0;
  config.documents = 2;  // joined
  config.head = HeadKind::kTanh;
  auto shapes = ShapesOf(config);
  EXPECT_THAT(shapes.at("model.embeddings.norm.weight"), ElementsAre(6));
  EXPECT_THAT(shapes.at("seq_classifer.mlpblock.0.weight"), ElementsAre(6, 6));
  EXPECT_THAT(shapes.at("seq_classifer.mlpblock.2.weight"), ElementsAre(4, 6));
  for (const char* const absent : {"model.norm.weight", "model.cls_embed", "model.transformer_0.mha.dual_ln_s.weight",
                                   "model.transformer_0.mha.dual_ln_l.bias", "model.transformer_0.mha.dconv_fc.weight"})
    EXPECT_EQ(shapes.count(absent), 0) << absent;

  config.classes = 0;
  shapes = ShapesOf(config);
  EXPECT_EQ(shapes.count("seq_classifer.mlpblock.0.weight"), 0);
  EXPECT_EQ(shapes.count("seq_classifer.mlpblock.2.bias"), 0);
}

TEST(TextClassifierTensors, CountRobertaBase) {
  TextClassifierConfig config;
  config.cls = ClsKind::kFirstToken;
  config.layer_norm = LayerNormPlace::kAfter;
  config.dual_norm = false;
  config.projection_rank = 0;
  config.head = HeadKind::kTanh;
  config.layers = 12;
  config.model_width = 768;
  config.heads = 12;
  config.feed_forward_width = 3072;
  config.vocabulary_size = 50'265;
  config.max_sequence_length = 512;
  // transformers counts 124,647,170 for two classes: with two more positions and a row of the token type.
  EXPECT_EQ(CountParameters(TextClassifierTensors(config)), 124'647'170 - 3 * 768);
}

// Long Range Arena's three models as measured on the official code.
TEST(TextClassifierTensors, CountTheOfficialParameters) {
  TextClassifierConfig listops;
  listops.max_sequence_length = 2048;
  listops.classes = 10;
  EXPECT_EQ(CountParameters(TextClassifierTensors(listops)), 249'418);
  TextClassifierConfig text;
  EXPECT_EQ(CountParameters(TextClassifierTensors(text)), 379'458);
  TextClassifierConfig retrieval;
  retrieval.documents = 2;
  EXPECT_EQ(CountParameters(TextClassifierTensors(retrieval)), 404'034);
}

}  // namespace longshort::models::text_classifier_tensors_test
