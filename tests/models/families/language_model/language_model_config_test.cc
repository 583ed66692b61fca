#include "models/families/language_model/language_model_config.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/base/status_matchers.h"

namespace longshort::models::language_model_config_test {

using Words = std::vector<std::string>;

// The text of a valid config.json, with `field` set to `value`.
std::string With(const std::string& field, const nlohmann::json& value) {
  nlohmann::json document = nlohmann::json::parse(ToJson(LanguageModelConfig()));
  document[field] = value;
  return document.dump();
}

absl::Status ParseWith(const std::string& field, const nlohmann::json& value) {
  return ParseLanguageModelConfig(With(field, value), "some/config.json").status();
}

TEST(LanguageModelConfig, ReadsTheNamesThatTheConverterWrites) {
  const auto config = ParseLanguageModelConfig(
      R"({"architecture": "language_model", "layers": 30, "model_width": 64, "heads": 4, "feed_forward_width": 96,
          "chunk_size": 8, "chunk_rank": 2, "window_length": 20, "memory_length": 32, "segment_length": 24,
          "vocabulary_size": 206, "window_position_clamp": 7, "chunk_position_clamp": -1, "pre_layer_norm": false,
          "projection_bias": true, "activation": "relu", "tokenizer": "fairseq_characters"})",
      "config.json");
  ASSERT_THAT(config, IsOk());
  LanguageModelConfig expected;
  expected.layers = 30;
  expected.model_width = 64;
  expected.heads = 4;
  expected.feed_forward_width = 96;
  expected.chunk_size = 8;
  expected.chunk_rank = 2;
  expected.window_length = 20;
  expected.memory_length = 32;
  expected.segment_length = 24;
  expected.vocabulary_size = 206;
  expected.window_position_clamp = 7;
  expected.chunk_position_clamp = 0;
  expected.pre_layer_norm = false;
  expected.projection_bias = true;
  expected.activation = Activation::kRelu;
  expected.tokenizer = TokenizerKind::kFairseqCharacters;
  EXPECT_EQ(*config, expected);
}

TEST(LanguageModelConfig, WhatIsWrittenIsReadBack) {
  for (const Activation activation : {Activation::kGelu, Activation::kRelu}) {
    for (const TokenizerKind tokenizer :
         {TokenizerKind::kNone, TokenizerKind::kFairseqBytes, TokenizerKind::kFairseqCharacters}) {
      LanguageModelConfig config;
      config.activation = activation;
      config.tokenizer = tokenizer;
      config.chunk_position_clamp = 100;
      config.projection_bias = true;
      const auto parsed = ParseLanguageModelConfig(ToJson(config), "f");
      ASSERT_THAT(parsed, IsOk());
      EXPECT_EQ(*parsed, config);
    }
  }
}

TEST(LanguageModelConfig, EveryFieldIsRequired) {
  const nlohmann::json whole = nlohmann::json::parse(ToJson(LanguageModelConfig()));
  for (const auto& field : whole.items()) {
    nlohmann::json document = whole;
    document.erase(field.key());
    EXPECT_THAT(ParseLanguageModelConfig(document.dump(), "some/config.json"),
                Refuses(Words{"some/config.json", field.key() + " is missing"}));
  }
}

TEST(LanguageModelConfig, EveryFieldHasOneType) {
  const nlohmann::json whole = nlohmann::json::parse(ToJson(LanguageModelConfig()));
  for (const auto& field : whole.items()) {
    for (const nlohmann::json& wrong : {nlohmann::json(nullptr), nlohmann::json(2.5), nlohmann::json::array({1}),
                                        nlohmann::json("wrong"), nlohmann::json(nlohmann::json::object())}) {
      EXPECT_THAT(ParseWith(field.key(), wrong), Refuses(Words{"some/config.json", field.key() + " is "}))
          << wrong.dump();
    }
  }
}

TEST(LanguageModelConfig, NamesAnUnknownField) {
  EXPECT_THAT(ParseWith("layer", 3), Refuses(Words{"some/config.json", "unknown field 'layer'", "layers"}));
}

TEST(LanguageModelConfig, NamesAFieldThatStandsTwice) {
  std::string text = ToJson(LanguageModelConfig());
  text.insert(1, "\"layers\": 12,");
  EXPECT_THAT(ParseLanguageModelConfig(text, "f"), Refuses(Words{"duplicate key 'layers'"}));
}

TEST(LanguageModelConfig, NamesAnotherArchitecture) {
  EXPECT_THAT(ParseWith("architecture", "vil"), Refuses(Words{"architecture is 'vil'", "language_model"}));
}

TEST(LanguageModelConfig, NamesAValueOutOfRangeWithItsLimits) {
  for (const std::string field : {"layers", "model_width", "heads", "feed_forward_width", "chunk_size", "chunk_rank",
                                  "window_length", "memory_length", "segment_length", "vocabulary_size"}) {
    EXPECT_THAT(ParseWith(field, 0), Refuses(Words{field + " is 0; it must be in "}));
    EXPECT_THAT(ParseWith(field, -1), Refuses(Words{field + " is -1; it must be in "}));
    EXPECT_THAT(ParseWith(field, std::numeric_limits<int64_t>::max()),
                Refuses(Words{field + " is 9223372036854775807"}));
    EXPECT_THAT(ParseWith(field, std::numeric_limits<uint64_t>::max()), Refuses(Words{field, "an integer"}));
  }
  EXPECT_THAT(ParseWith("window_position_clamp", -2), Refuses(Words{"window_position_clamp is -2"}));
}

TEST(LanguageModelConfig, HoldsTheRulesBetweenFields) {
  EXPECT_THAT(ParseWith("model_width", 516), Refuses(Words{"model_width is 516", "multiple of heads, 8"}));
  EXPECT_THAT(ParseWith("model_width", 511), Refuses(Words{"model_width is 511", "multiple of 2"}));
  EXPECT_THAT(ParseWith("segment_length", 250), Refuses(Words{"segment_length is 250", "multiple of chunk_size, 16"}));
  EXPECT_THAT(ParseWith("memory_length", 1000), Refuses(Words{"memory_length is 1000", "multiple of chunk_size, 16"}));
  EXPECT_THAT(ParseWith("memory_length", 496), Refuses(Words{"memory_length is 496", "at least window_length, 512"}));
  // A window need not be a multiple of the chunk, and a segment may be longer than the memory.
  EXPECT_THAT(ParseWith("window_length", 500), IsOk());
  EXPECT_THAT(ParseWith("window_length", 1), IsOk());
  EXPECT_THAT(ParseWith("segment_length", 16384), IsOk());
}

TEST(LanguageModelConfig, TakesEveryPublishedConfiguration) {
  for (const int64_t layers : {12, 30}) {
    for (const int64_t memory : {2048, 4096, 8192, 32768}) {
      LanguageModelConfig config;
      config.layers = layers;
      config.memory_length = memory;
      EXPECT_THAT(CheckLanguageModelConfig(config, "f"), IsOk());
    }
  }
}

// Each field alone may be this large, all together would be petabytes of position tables.
TEST(LanguageModelConfig, RefusesTablesThatExhaustMemory) {
  LanguageModelConfig config;
  config.layers = 1024;
  config.model_width = 16384;
  config.chunk_size = 1;
  config.chunk_rank = 256;
  config.window_length = 1 << 17;
  config.memory_length = 1 << 22;
  config.segment_length = 1 << 22;
  // 2^10 * (2^17 + (2^23 - 1) * 2^8) * 2^14
  EXPECT_EQ(config.PositionTableElements(), (int64_t{1} << 24) * ((1 << 17) + ((int64_t{1} << 23) - 1) * 256));
  EXPECT_THAT(CheckLanguageModelConfig(config, "f"),
              Refuses(Words{std::to_string(config.PositionTableElements()), "limit is 1073741824"}));
}

}  // namespace longshort::models::language_model_config_test
