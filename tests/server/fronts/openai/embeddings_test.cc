#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/fronts/openai/openai.h"
#include "tests/base/status_matchers.h"

namespace longshort::server::embeddings_test {

using ::testing::HasSubstr;

const RequestLimits kLimits = {.prompt_tokens = 100};

absl::StatusOr<EmbeddingsRequest> ReadEmbeddingsRequest(const std::string& body) {
  MemoryMeter meter;
  EmbeddingsRequest request;
  HttpRequest by_http;
  by_http.body = body;
  const absl::Status read = ReadEmbeddings(by_http, kLimits, request, meter);
  if (!read.ok()) return read;
  return request;
}

Prompt Ids(std::vector<int32_t> ids) { return ids; }

std::string ErrorOf(const std::string& body) { return RefusalOf(ReadEmbeddingsRequest(body).status()); }

TEST(Embeddings, AnInputHasFourForms) {
  EXPECT_EQ(ReadEmbeddingsRequest(R"({"input": "a"})")->inputs[0], Prompt("a"));
  EXPECT_EQ(ReadEmbeddingsRequest(R"({"input": ["a", "b"]})")->inputs[1], Prompt("b"));
  EXPECT_EQ(ReadEmbeddingsRequest(R"({"input": [5, 6]})")->inputs[0], Ids({5, 6}));
  EXPECT_EQ(ReadEmbeddingsRequest(R"({"input": [[5], [6, 7]]})")->inputs[1], Ids({6, 7}));
}

TEST(Embeddings, TruncateIsReadAndAnswersNoOtherDirection) {
  EXPECT_FALSE(ReadEmbeddingsRequest(R"({"input": "a"})")->truncate);
  EXPECT_TRUE(ReadEmbeddingsRequest(R"({"input": "a", "truncate": true})")->truncate);
  EXPECT_FALSE(ReadEmbeddingsRequest(R"({"input": "a", "truncate": true, "truncation_direction": "Left"})")->truncate);
  EXPECT_TRUE(ReadEmbeddingsRequest(R"({"input": "a", "truncate_prompt_tokens": -1})")->truncate);
}

TEST(Embeddings, WhatIsNotSupportedIsRefusedByName) {
  EXPECT_THAT(ErrorOf(R"({"input": "a", "prompt_name": "query"})"), HasSubstr("prompt_name is not supported"));
  EXPECT_THAT(ErrorOf(R"({"input": "a", "modality": "image"})"),
              HasSubstr("modality is not supported: the inputs are"));
  EXPECT_THAT(ErrorOf(R"({"input": "a", "normalize": false})"), HasSubstr("normalize is not supported"));
  for (const char* field :
       {"\"add_special_tokens\": false", "\"embed_dtype\": \"float16\"", "\"endianness\": \"big\""}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(R"({"input": "a", )", field, "}")), HasSubstr(" is not supported: "));
  }
  EXPECT_THAT(ErrorOf(R"({"input": "a", "truncate_prompt_tokens": 5})"),
              HasSubstr("truncate_prompt_tokens is not supported: send `truncate`"));
  EXPECT_THAT(ErrorOf(R"({"input": "a", "truncate": 1})"), HasSubstr("truncate is 1; it must be true or false"));
  EXPECT_THAT(ErrorOf(R"({"input": "a", "encoding_format": "int8"})"),
              HasSubstr("encoding_format is \"int8\"; it must be float or base64"));
  EXPECT_THAT(ErrorOf(R"({"model": "m"})"), HasSubstr("input is missing"));
  EXPECT_THAT(ErrorOf(R"({"input": ["a", 1]})"), HasSubstr("input[1] is 1; it must be a string"));
}

TEST(Embeddings, ClientsMaySendTheDefaultsOfFields) {
  const auto request = ReadEmbeddingsRequest(R"({"input": "a", "modality": "text", "normalize": true, "user": "b",
      "dimensions": 0, "add_special_tokens": true, "embed_dtype": "float32", "endianness": "native"})");
  EXPECT_THAT(request.status(), IsOk());
  EXPECT_EQ(request->dimensions, 0);
}

// The body of an answer with three embeddings.
nlohmann::json AnswerWith(bool in_base64) {
  EmbedResult result;
  result.model.name = "m\"";
  result.usage.prompt_tokens = 7;
  for (std::vector<float> values : {std::vector<float>{0.1F, 1}, {-2}, {1e-20F}}) {
    Embedding embedding;
    embedding.values = std::move(values);
    result.embeddings.emplace_back(std::move(embedding));
  }
  return nlohmann::json::parse(EmbeddingsJson(result, in_base64));
}

TEST(Embeddings, AnAnswerHasOpenAisForm) {
  const nlohmann::json floats = AnswerWith(false);
  EXPECT_EQ(floats["object"], "list");
  EXPECT_EQ(floats["model"], "m\"");
  EXPECT_EQ(floats["usage"], nlohmann::json({{"prompt_tokens", 7}, {"total_tokens", 7}}));
  EXPECT_EQ(floats["data"].size(), 3u);
  EXPECT_EQ(floats["data"][0], nlohmann::json({{"object", "embedding"}, {"index", 0}, {"embedding", {0.1, 1}}}));
  EXPECT_EQ(floats["data"][2]["embedding"][0], 1e-20);
  // 0.1 is 0x3dcccccd, and 1 is 0x3f800000.
  EXPECT_EQ(AnswerWith(true)["data"][0]["embedding"], "zczMPQAAgD8=");
}

}  // namespace longshort::server::embeddings_test
