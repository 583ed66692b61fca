#include "models/families/text_classifier/text_classifier_config.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/base/status_matchers.h"

namespace longshort::models::text_classifier_config_test {

using Words = std::vector<std::string>;

nlohmann::json Whole() { return nlohmann::json::parse(ToJson(TextClassifierConfig())); }

absl::Status Parse(const nlohmann::json& document) {
  return ParseTextClassifierConfig(document.dump(), "some/config.json").status();
}

absl::Status ParseWith(const std::string& field, const nlohmann::json& value) {
  nlohmann::json document = Whole();
  document[field] = value;
  return Parse(document);
}

TEST(TextClassifierConfig, ReadsTheNamesThatTheConverterWrites) {
  const auto config = ParseTextClassifierConfig(
      R"({"architecture": "text_classifier", "tokenizer": "pixels", "layers": 3, "model_width": 24, "heads": 4,
          "feed_forward_width": 48, "window_size": 5, "projection_rank": 7, "vocabulary_size": 256,
          "max_sequence_length": 1024, "cls": "none", "normalized_cls": true, "value_convolution": 9,
          "tied_layers": true, "documents": 1, "classes": 10, "pooled_length": 1000, "max_document_tokens": 900,
          "preprocessing": {"height": 30, "width": 20}})",
      "config.json");
  ASSERT_THAT(config, IsOk());
  TextClassifierConfig expected;
  expected.tokenizer = DocumentTokenizerKind::kPixels;
  expected.layers = 3;
  expected.model_width = 24;
  expected.heads = 4;
  expected.feed_forward_width = 48;
  expected.window_size = 5;
  expected.projection_rank = 7;
  expected.vocabulary_size = 256;
  expected.max_sequence_length = 1024;
  expected.cls = ClsKind::kNone;
  expected.normalized_cls = true;
  expected.value_convolution = 9;
  expected.tied_layers = true;
  expected.documents = 1;
  expected.classes = 10;
  expected.pooled_length = 1000;
  expected.max_document_tokens = 900;
  expected.preprocessing = {.height = 30, .width = 20};
  EXPECT_EQ(*config, expected);
}

TEST(TextClassifierConfig, WhatIsWrittenIsReadBack) {
  for (const ClsKind cls : {ClsKind::kNone, ClsKind::kVocabulary, ClsKind::kAllLayers, ClsKind::kLastLayer}) {
    for (const DocumentTokenizerKind tokenizer :
         {DocumentTokenizerKind::kNone, DocumentTokenizerKind::kBytesPlusOne, DocumentTokenizerKind::kListOps2020,
          DocumentTokenizerKind::kListOps2021, DocumentTokenizerKind::kPixels}) {
      TextClassifierConfig config;
      config.cls = cls;
      config.tokenizer = tokenizer;
      config.window_size = 0;
      config.projection_rank = 0;
      config.documents = tokenizer == DocumentTokenizerKind::kPixels ? 1 : 2;
      if (cls == ClsKind::kNone) config.pooled_length = 4000;
      const auto parsed = ParseTextClassifierConfig(ToJson(config), "f");
      ASSERT_THAT(parsed, IsOk());
      EXPECT_EQ(*parsed, config);
    }
  }
}

TextClassifierConfig Encoder() {
  TextClassifierConfig config;
  config.cls = ClsKind::kFirstToken;
  config.layer_norm = LayerNormPlace::kAfter;
  config.layer_norm_epsilon = 1e-12;
  config.dual_norm = false;
  config.projection_rank = 0;
  config.padding_id = 1;
  config.separator_id = 5;
  config.head = HeadKind::kTanh;
  config.problem_type = ProblemType::kMultiLabel;
  config.classes = 0;
  return config;
}

absl::Status ParseEncoderWith(const std::string& field, const nlohmann::json& value) {
  nlohmann::json document = nlohmann::json::parse(ToJson(Encoder()));
  document[field] = value;
  return Parse(document);
}

TEST(TextClassifierConfig, OptionalFieldsAreWrittenIfTheyDiffer) {
  for (const std::string field :
       {"layer_norm", "layer_norm_epsilon", "dual_norm", "padding_id", "separator_id", "head", "problem_type"}) {
    EXPECT_FALSE(Whole().contains(field)) << field;
    EXPECT_TRUE(nlohmann::json::parse(ToJson(Encoder())).contains(field)) << field;
  }
  const auto parsed = ParseTextClassifierConfig(ToJson(Encoder()), "f");
  ASSERT_THAT(parsed, IsOk());
  EXPECT_EQ(*parsed, Encoder());
}

TEST(TextClassifierConfig, ReadsTheFieldsOfAnEncoder) {
  nlohmann::json document = Whole();
  document.update(nlohmann::json::parse(
      R"({"cls": "first_token", "layer_norm": "after", "layer_norm_epsilon": 1e-12, "dual_norm": false,
          "projection_rank": 0, "padding_id": 1, "separator_id": 5, "head": "tanh",
          "problem_type": "multi_label_classification", "classes": 0})"));
  const auto config = ParseTextClassifierConfig(document.dump(), "config.json");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(*config, Encoder());
  document["problem_type"] = "regression";
  document["window_size"] = 1 << 17;
  const auto regression = ParseTextClassifierConfig(document.dump(), "config.json");
  ASSERT_THAT(regression, IsOk());
  EXPECT_EQ(regression->problem_type, ProblemType::kRegression);
}

TEST(TextClassifierConfig, HoldsTheRulesOfEncoders) {
  EXPECT_THAT(ParseEncoderWith("layers", 1), IsOk());
  EXPECT_THAT(ParseEncoderWith("cls", "last_layer"), Refuses(Words{"unknown field 'separator_id'"}));
  EXPECT_THAT(ParseWith("layer_norm", "after"), Refuses(Words{"layer_norm is 'after'", "first_token"}));
  EXPECT_THAT(ParseWith("dual_norm", false), Refuses(Words{"dual_norm is false", "projection_rank is 32"}));
  EXPECT_THAT(ParseWith("layer_norm", "none"), Refuses(Words{"layer_norm"}));
  EXPECT_THAT(ParseEncoderWith("layer_norm_epsilon", 0), Refuses(Words{"layer_norm_epsilon is 0"}));
  EXPECT_THAT(ParseEncoderWith("head", "relu"), Refuses(Words{"classes is 0; it must be in 1..1048576"}));
  EXPECT_THAT(ParseEncoderWith("padding_id", 512), Refuses(Words{"padding_id is 512; it must be in 0..511"}));
  EXPECT_THAT(ParseEncoderWith("separator_id", 512), Refuses(Words{"separator_id is 512; it must be in 0..511"}));
  EXPECT_THAT(ParseEncoderWith("separator_id", 1), Refuses(Words{"separator_id is 1", "padding_id"}));
  EXPECT_THAT(ParseEncoderWith("tokenizer", "bytes_plus_one"),
              Refuses(Words{"cls is 'first_token'", "'bytes_plus_one'"}));
  nlohmann::json bytes = Whole();
  bytes["tokenizer"] = "bytes_plus_one";
  bytes["padding_id"] = 1;
  EXPECT_THAT(Parse(bytes), Refuses(Words{"padding_id is 1", "'bytes_plus_one'"}));
}

TEST(TextClassifierConfig, LengthsThatAreNotGivenAreAllThatFit) {
  TextClassifierConfig config;
  config.max_sequence_length = 100;
  EXPECT_EQ(config.MaxDocumentTokens(), 100);
  config.cls = ClsKind::kVocabulary;
  EXPECT_EQ(config.MaxDocumentTokens(), 99);  // CLS has a position
  config.cls = ClsKind::kFirstToken;
  EXPECT_EQ(config.MaxDocumentTokens(), 100);
  config.cls = ClsKind::kNone;
  EXPECT_EQ(config.PooledLength(), 100);
  config.pooled_length = 80;
  EXPECT_EQ(config.MaxDocumentTokens(), 80);  // a mean over 80 has no place for more
  config.max_document_tokens = 70;
  EXPECT_EQ(config.MaxDocumentTokens(), 70);
}

TEST(TextClassifierConfig, EveryFieldIsRequiredAndHasOneType) {
  const nlohmann::json whole = Whole();
  for (const auto& field : whole.items()) {
    nlohmann::json document = whole;
    document.erase(field.key());
    EXPECT_THAT(Parse(document), Refuses(Words{"some/config.json", field.key() + " is missing"}));
    for (const nlohmann::json& wrong :
         {nlohmann::json(nullptr), nlohmann::json(2.5), nlohmann::json::array({1}), nlohmann::json("wrong")}) {
      EXPECT_THAT(ParseWith(field.key(), wrong), Refuses(Words{"some/config.json", field.key() + " is "}))
          << wrong.dump();
    }
  }
}

TEST(TextClassifierConfig, FieldsThatDoNotApplyAreUnknown) {
  EXPECT_THAT(ParseWith("layer", 3), Refuses(Words{"unknown field 'layer'"}));
  EXPECT_THAT(ParseWith("pooled_length", 10), Refuses(Words{"unknown field 'pooled_length'"}));  // there is a CLS
  EXPECT_THAT(ParseWith("preprocessing", nlohmann::json::object({{"height", 4}, {"width", 4}})),
              Refuses(Words{"unknown field 'preprocessing'"}));
  EXPECT_THAT(ParseWith("tokenizer", "pixels"), Refuses(Words{"preprocessing is missing"}));
}

TEST(TextClassifierConfig, NamesAValueOutOfRangeWithItsLimits) {
  for (const std::string field : {"layers", "model_width", "heads", "feed_forward_width", "vocabulary_size",
                                  "max_sequence_length", "documents", "classes"}) {
    EXPECT_THAT(ParseWith(field, 0), Refuses(Words{field + " is 0; it must be in "}));
    EXPECT_THAT(ParseWith(field, std::numeric_limits<int64_t>::max()),
                Refuses(Words{field + " is 9223372036854775807"}));
  }
  for (const std::string field : {"window_size", "projection_rank", "value_convolution"}) {
    EXPECT_THAT(ParseWith(field, -1), Refuses(Words{field + " is -1; it must be in 0.."}));
    EXPECT_THAT(ParseWith(field, 0), IsOk());
  }
  EXPECT_THAT(ParseWith("documents", 3), Refuses(Words{"documents is 3; it must be in 1..2"}));
}

TEST(TextClassifierConfig, HoldsTheRulesBetweenFields) {
  EXPECT_THAT(ParseWith("model_width", 65), Refuses(Words{"model_width is 65", "multiple of heads, 2"}));
  EXPECT_THAT(ParseWith("value_convolution", 4), Refuses(Words{"value_convolution is 4", "odd"}));
  EXPECT_THAT(ParseWith("max_document_tokens", 4097), Refuses(Words{"max_document_tokens is ", "4097", "4096"}));
  nlohmann::json document = Whole();
  document["cls"] = "vocabulary";
  document["max_document_tokens"] = 4096;
  EXPECT_THAT(Parse(document), Refuses(Words{"max_document_tokens is 4096", "4095"}));
  document = Whole();
  document["tokenizer"] = "bytes_plus_one";
  document["vocabulary_size"] = 256;
  EXPECT_THAT(Parse(document), Refuses(Words{"vocabulary_size is 256", "bytes_plus_one", "257"}));
  document = Whole();
  document["tokenizer"] = "pixels";
  document["preprocessing"] = {{"height", 65}, {"width", 64}};
  EXPECT_THAT(Parse(document), Refuses(Words{"65 x 64 = 4160", "4096"}));
  document["preprocessing"] = {{"height", 64}, {"width", 64}};
  document["documents"] = 2;
  EXPECT_THAT(Parse(document), Refuses(Words{"documents is 2", "'pixels'"}));
}

}  // namespace longshort::models::text_classifier_config_test
