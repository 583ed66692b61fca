#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/fronts/openai/openai.h"
#include "tests/base/status_matchers.h"

namespace longshort::server::completions_codec_test {

using ::testing::HasSubstr;

absl::StatusOr<CompletionsRequest> ReadCompletionsRequest(const std::string& body) {
  MemoryMeter meter;
  CompletionsRequest request;
  HttpRequest by_http;
  by_http.body = body;
  const absl::Status read = ReadCompletions(by_http, {.prompt_tokens = 5}, request, meter);
  if (!read.ok()) return read;
  return request;
}

Prompt Ids(std::vector<int32_t> ids) { return ids; }

std::string ErrorOf(const std::string& body) { return RefusalOf(ReadCompletionsRequest(body).status()); }

TEST(CompletionsCodec, FieldsThatAreAbsentOrNullHaveOpenAisDefaults) {
  const auto request = ReadCompletionsRequest(R"({"prompt": "a", "max_tokens": null, "seed": null, "stop": null})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->call.max_tokens, 16);
  EXPECT_EQ(request->call.completions, 1);
  EXPECT_EQ(request->call.sampling.temperature, 1);
  EXPECT_EQ(request->call.sampling.top_p, 1);
  EXPECT_FALSE(request->call.seed.has_value() || request->call.token_log_probabilities || request->stream);
}

TEST(CompletionsCodec, APromptHasFourForms) {
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a"})")->prompts[0], Prompt("a"));
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": ["a", "b"]})")->prompts[1], Prompt("b"));
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": [5, 6]})")->prompts[0], Ids({5, 6}));
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": [[5], [6, 7]]})")->prompts[1], Ids({6, 7}));
  EXPECT_EQ(ErrorOf(R"({"prompt": [5, 3000000000]})"), "prompt[1] is 3000000000; it must be a token id");
}

TEST(CompletionsCodec, ListsHaveTheLimitsOfTheRequest) {
  const auto list_of = [](int elements, const std::string& one) {
    std::string list = "[" + one;
    for (int i = 1; i < elements; ++i) list += "," + one;
    return list;
  };
  EXPECT_TRUE(ReadCompletionsRequest(R"({"prompt": )" + list_of(64, "[1,2,3,4,5]") + "]}").ok());
  // What follows the first element too many is not read.
  EXPECT_EQ(ErrorOf(R"({"prompt": )" + list_of(2049, "\"\"")), "the body: prompt has more than 2048 elements");
  EXPECT_EQ(ErrorOf(R"({"prompt": )" + list_of(2049, "[1]")), "the body: prompt has more than 2048 elements");
  EXPECT_EQ(ErrorOf(R"({"prompt": )" + list_of(6, "7")), "the body: prompt has more than 5 numbers");
  EXPECT_EQ(ErrorOf(R"({"prompt": [)" + list_of(6, "7")), "the body: prompt has more than 5 numbers");
  EXPECT_EQ(ErrorOf(R"({"stop": )" + list_of(17, "\"\"")), "the body: stop has more than 16 elements");
  std::string biases = R"({"logit_bias": {)";
  for (int i = 0; i <= 1024; ++i) biases += "\"" + std::to_string(i) + "\":1,";
  EXPECT_EQ(ErrorOf(biases), "the body: logit_bias has more than 1024 elements");
}

TEST(CompletionsCodec, ASeedHas64BitsWithOrWithoutSign) {
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a", "seed": -1})")->call.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a", "seed": 18446744073709551615})")->call.seed,
            std::numeric_limits<uint64_t>::max());
}

TEST(CompletionsCodec, FieldsWithoutMeaningAreRefusedByName) {
  EXPECT_THAT(ErrorOf(R"({"prompt": "a", "suffix": "b"})"), HasSubstr("suffix is not supported"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "a", "guided_regex": "b"})"), HasSubstr("guided_regex is not supported"));
  EXPECT_TRUE(ReadCompletionsRequest(R"({"prompt": "a", "suffix": null, "min_tokens": null})").ok());
}

TEST(CompletionsCodec, ARefusedFieldIsIgnoredWhereItsValueChangesNothing) {
  for (const RefusedField& row : CompletionsBody().refused) {
    const auto body_with = [&row](const nlohmann::json& value) {
      return nlohmann::json{{"prompt", "a"}, {std::string(row.field), value}}.dump();
    };
    for (const nlohmann::json& neutral : nlohmann::json::parse(row.neutral)) {
      EXPECT_TRUE(ReadCompletionsRequest(body_with(neutral)).ok()) << row.field << neutral;
    }
    EXPECT_THAT(ErrorOf(body_with("x")), HasSubstr(std::string(row.field) + " is not supported: "));
  }
  EXPECT_TRUE(ReadCompletionsRequest(R"({"prompt": "a", "length_penalty": 1.0, "top_a": 0.0})").ok());
  EXPECT_FALSE(ReadCompletionsRequest(R"({"prompt": "a", "use_beam_search": 0})").ok());
}

TEST(CompletionsCodec, FieldsThatClientsAddAreIgnored) {
  EXPECT_TRUE(ReadCompletionsRequest(R"({"prompt": "a", "nonsense": 1, "metadata": {"a": 1}, "store": true, "user": 5,
                                         "ignore_eos": true, "nothing": null})")
                  .ok());
  EXPECT_TRUE(ReadCompletionsRequest(R"({"prompt": "a", "stream": true, "stream_options":
                                         {"include_usage": true, "include_obfuscation": false}})")
                  ->include_usage);
  EXPECT_FALSE(ReadCompletionsRequest(R"({"prompt": "a", "stream": true, "stream_options": {"include_usage": null}})")
                   ->include_usage);
}

TEST(CompletionsCodec, ANumberWithoutAFractionIsAWholeNumber) {
  const auto request =
      ReadCompletionsRequest(R"({"prompt": [1.0, 2e0], "max_tokens": 16.0, "n": 2e0, "seed": 7.0, "logprobs": 3.0})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->call.max_tokens, 16);
  EXPECT_EQ(request->call.completions, 2);
  EXPECT_EQ(request->call.seed, 7);
  EXPECT_EQ(request->call.top_alternatives, 3);
  EXPECT_EQ(request->prompts[0], Ids({1, 2}));
  EXPECT_EQ(ErrorOf(R"({"prompt": "a", "max_tokens": 1.5})"), "max_tokens is 1.5; it must be an integer");
  EXPECT_THAT(ErrorOf(R"({"prompt": "a", "max_tokens": 1e300})"), HasSubstr("it must be an integer"));
  EXPECT_THAT(ErrorOf(R"({"prompt": [1.5]})"), HasSubstr("prompt[0] is 1.5; it must be a token id"));
}

TEST(CompletionsCodec, SamplingOptionsOfOtherServers) {
  const auto request =
      ReadCompletionsRequest(R"({"prompt": "a", "top_k": 4, "min_p": 0.25, "repetition_penalty": 1.5})");
  EXPECT_EQ(request->call.sampling.top_k, 4);
  EXPECT_EQ(request->call.sampling.min_p, 0.25);
  EXPECT_EQ(request->call.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a", "top_k": -1})")->call.sampling.top_k, 0);
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a"})")->call.sampling.repetition_penalty, 1);
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a", "truncate_prompt_tokens": -1})")->kept_tokens, -1);
  for (const char* const wrong : {"0", "-2"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat(R"({"prompt": "a", "truncate_prompt_tokens": )", wrong, "}")),
                HasSubstr(absl::StrCat("is ", wrong, "; it must be at least 1, or -1 for")));
  }
}

TEST(CompletionsCodec, AnErrorHasOpenAisForm) {
  const HttpResponse answer = OpenAiError(absl::InvalidArgumentError("max_tokens is -1; it must be at least 0"));
  EXPECT_EQ(answer.status, 400);
  const nlohmann::json error = nlohmann::json::parse(answer.body)["error"];
  EXPECT_EQ(error["param"], "max_tokens");
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_TRUE(error["code"].is_null());
  EXPECT_EQ(OpenAiError(absl::ResourceExhaustedError("full")).status, 429);
  EXPECT_THAT(OpenAiError(absl::NotFoundError("none")).body, HasSubstr("model_not_found"));
}

}  // namespace longshort::server::completions_codec_test
