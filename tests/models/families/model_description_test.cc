#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "models/families/family.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/text_classifier/text_classifier_config.h"

namespace longshort::models::model_description_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> StageNames(const ModelDescription& description) {
  std::vector<std::string> names;
  for (const StageCost& stage : description.stages) names.push_back(stage.name);
  return names;
}

// Small enough to count by hand.
TextClassifierConfig TinyText() {
  TextClassifierConfig config;
  config.layers = 1;
  config.model_width = 4;
  config.heads = 2;
  config.feed_forward_width = 8;
  config.window_size = 2;
  config.projection_rank = 3;
  config.vocabulary_size = 10;
  config.max_sequence_length = 6;
  config.cls = ClsKind::kNone;
  return config;
}

TEST(TextClassifier, IsCountedAsByHand) {
  const ModelDescription description = Describe(TinyText());
  EXPECT_THAT(StageNames(description), ElementsAre("embedding", "layer 1", "head"));
  const StageCost& layer = description.stages[1];
  EXPECT_EQ(layer.tokens, 6);
  EXPECT_EQ(layer.width, 4);
  // 4 projections of 6 rows; dconv_fc to 2 * 3 channels; landmarks of keys and values; 3 landmarks and 4 window keys,
  // as scores and sums; the feed-forward.
  EXPECT_EQ(layer.multiply_adds, 4 * 6 * 4 * 4 + 6 * 4 * 6 + 2 * 3 * 6 * 4 + 2 * 6 * (3 + 4) * 4 + 2 * 6 * 4 * 8);
  // norm1 and norm2; dual_ln_l and dual_ln_s, each for keys and values.
  EXPECT_EQ(layer.normed_elements, (6 + 6 + 2 * 6 + 2 * 3) * 4);
  EXPECT_EQ(description.stages[2].multiply_adds, 8 * (4 + 2));
  EXPECT_EQ(description.parameters(), CountParameters(TextClassifierTensors(TinyText())));
}

TEST(TextClassifier, EachKindOfClsAddsItsRows) {
  TextClassifierConfig config = TinyText();
  config.layers = 2;
  const int64_t none = Describe(config).stages[1].multiply_adds;
  config.cls = ClsKind::kLastLayer;
  EXPECT_EQ(Describe(config).stages[1].multiply_adds, none);
  // One row more in the projections and the feed-forward, a key more for 6 tokens, and a query over 7 rows.
  const int64_t cls = 4 * 4 * 4 + 2 * 4 * 8 + 2 * 6 * 4 + 2 * 7 * 4;
  EXPECT_EQ(Describe(config).stages[2].multiply_adds, none + cls);
  config.cls = ClsKind::kAllLayers;
  EXPECT_EQ(Describe(config).stages[1].multiply_adds, none + cls);
  // The token in front takes a place of the position table.
  config.cls = ClsKind::kVocabulary;
  config.max_sequence_length = 7;
  EXPECT_EQ(Describe(config).stages[1].multiply_adds, none + cls);
  EXPECT_EQ(Describe(config).stages[1].tokens, 7);
}

TEST(TextClassifier, ALongDocumentEncoderIsCountedAsByHand) {
  TextClassifierConfig config = TinyText();
  config.max_sequence_length = 7;
  config.cls = ClsKind::kFirstToken;
  config.layer_norm = LayerNormPlace::kAfter;
  config.head = HeadKind::kTanh;
  config.documents = 2;  // joined
  const ModelDescription description = Describe(config);
  EXPECT_THAT(description.item, HasSubstr("one document of 7 tokens"));
  EXPECT_EQ(description.stages[0].normed_elements, 7 * 4);
  const StageCost& layer = description.stages[1];
  // As with one of Long Range Arena's CLS rows.
  EXPECT_EQ(layer.multiply_adds,
            4 * 7 * 4 * 4 + 6 * 4 * 6 + 2 * 3 * 6 * 4 + 2 * 6 * (1 + 3 + 4) * 4 + 2 * 7 * 4 + 2 * 7 * 4 * 8);
  EXPECT_EQ(layer.normed_elements, (7 + 7 + 2 * 7 + 2 * 3) * 4);
  EXPECT_EQ(description.stages[2].multiply_adds, 4 * (4 + 2));
  EXPECT_EQ(description.stages[2].normed_elements, 0);

  // RoBERTa: a window of all tokens, no landmarks, no head.
  config.window_size = 100;
  config.projection_rank = 0;
  config.dual_norm = false;
  config.classes = 0;
  const ModelDescription roberta = Describe(config);
  EXPECT_EQ(roberta.stages[1].multiply_adds, 4 * 7 * 4 * 4 + 2 * 7 * 7 * 4 + 2 * 7 * 4 * 8);
  EXPECT_EQ(roberta.stages[1].normed_elements, 2 * 7 * 4);
  EXPECT_EQ(roberta.stages[2].work(), 0);
  EXPECT_EQ(roberta.parameters(), CountParameters(TextClassifierTensors(config)));
}

TEST(TextClassifier, TwoDocumentsTakeTwiceTheWorkOfTheLayers) {
  TextClassifierConfig config = TinyText();
  const int64_t one = Describe(config).stages[1].work();
  config.documents = 2;
  EXPECT_EQ(Describe(config).stages[1].work(), 2 * one);
  EXPECT_THAT(Describe(config).item, HasSubstr("two documents of 6 tokens"));
}

TEST(TextClassifier, TheTaskHasTheProblemTypeTheClassesAndWhatItWasTrainedOn) {
  TextClassifierConfig config = TinyText();
  config.classes = 3;
  EXPECT_EQ(Describe(config).task, "single_label_classification of 3 classes, trained on single documents");
  config.cls = ClsKind::kFirstToken;
  config.documents = 2;
  config.problem_type = ProblemType::kMultiLabel;
  EXPECT_EQ(Describe(config).task, "multi_label_classification of 3 classes, trained on pairs of documents");
  config.problem_type = ProblemType::kRegression;
  EXPECT_EQ(Describe(config).task, "regression of 3 numbers, trained on pairs of documents");
  config.classes = 1;
  EXPECT_EQ(Describe(config).task, "regression of 1 number, trained on pairs of documents");
  config.classes = 0;
  EXPECT_EQ(Describe(config).task, "an encoder without a head");
}

TEST(TextClassifier, TiedLayersHaveTheirParametersOnce) {
  TextClassifierConfig config = TinyText();
  config.layers = 3;
  config.tied_layers = true;
  const ModelDescription description = Describe(config);
  EXPECT_EQ(description.parameters(), CountParameters(TextClassifierTensors(config)));
  EXPECT_GT(description.stages[1].parameters, 0);
  EXPECT_EQ(description.stages[3].parameters, 0);
  EXPECT_EQ(description.stages[3].work(), description.stages[1].work());
}

TEST(LanguageModel, IsCountedAsByHand) {
  LanguageModelConfig config;
  config.layers = 2;
  config.model_width = 8;
  config.heads = 2;
  config.feed_forward_width = 16;
  config.chunk_size = 4;
  config.chunk_rank = 2;
  config.window_length = 5;
  config.memory_length = 16;
  config.segment_length = 8;
  config.vocabulary_size = 11;
  const ModelDescription description = Describe(config);
  EXPECT_THAT(StageNames(description), ElementsAre("embedding", "layer 1", "layer 2", "output"));
  EXPECT_EQ(description.parameters(), CountParameters(LanguageModelTensors(config)));
  // (16 + 8) / 4 - 1 = 5 chunks of 2 vectors are seen beside the window.
  EXPECT_EQ(description.stages[1].multiply_adds,
            4 * 8 * 8 + 2 * 8 * 16 + 8 * 2 * 2 + 3 * (5 + 10) * 8 + 3 * 2 * 8 + 2 * 2 * 8 * 8 / 4);
  EXPECT_EQ(description.stages[3].multiply_adds, 11 * 8);
  // Keys and values of 5 + 12 rows in 2 layers; 4 tokens of an open chunk: x, key, value and 2 * 2 logits.
  EXPECT_EQ(description.cached_numbers, 2 * 2 * 8 * (5 + 12));
  EXPECT_EQ(description.open_chunk_bytes, 2 * 4 * (3 * 8 + 4) * 4);
}

TEST(LanguageModel, ALongStreamCostsWhatTheDesignSays) {
  LanguageModelConfig config;  // enwik8's base model
  config.memory_length = 32768;
  const ModelDescription description = Describe(config);
  // 63 MiB in bf16, some of it for whole pages.
  EXPECT_NEAR((2.0 * description.cached_numbers + description.open_chunk_bytes) / (1 << 20), 62, 1.5);
}

TEST(TextClassifier, WorkBeyond64BitsIsExact) {
  TextClassifierConfig config = TinyText();
  config.layers = 1000;
  config.model_width = config.projection_rank = 16384;
  config.max_sequence_length = 1 << 22;
  const ModelDescription description = Describe(config);
  const double layer = description.stages[1].work();
  EXPECT_GT(1000 * layer, 0x1p63);
  EXPECT_NEAR(description.work(), 1000 * layer, 0.01 * 1000 * layer);
}

TEST(DescribeConfig, WhatIsWrongIsNamed) {
  const auto message = [](const std::string& text) {
    const auto description = DescribeConfig(text, "config.json");
    EXPECT_EQ(description.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(description.status().message());
  };
  EXPECT_THAT(message("[]"), HasSubstr("config.json"));
  EXPECT_THAT(message("{}"), HasSubstr("architecture"));
  EXPECT_THAT(message(R"({"architecture": "resnet"})"), HasSubstr("resnet"));
  const std::string wrong =
      absl::StrReplaceAll(std::string(FindPreset("lra-text")), {{"\"heads\": 2", "\"heads\": 3"}});
  EXPECT_THAT(message(wrong), HasSubstr("heads"));
}

TEST(ToText, HasARowForEachStageAndTheTotals) {
  const std::string text = ToText(*DescribeConfig(FindPreset("vil-ls-medium-224"), "preset"));
  EXPECT_THAT(text, HasSubstr("vil: multiply-adds of one image of 224 x 224 pixels\n"
                              "single_label_classification of 1000 classes\n\n"));
  // 56 x 56 patches and a global token.
  EXPECT_THAT(text, HasSubstr("\nstage 1         3,137      96 "));
  EXPECT_THAT(text, HasSubstr("\nstage 4            49     768 "));
  EXPECT_THAT(text, HasSubstr("\ntotal                             39,799,423        8.7"));
}

}  // namespace longshort::models::model_description_test
