#include "server/openai/completions_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "nlohmann/json.hpp"
#include "server/openai/completions_request.h"

namespace longshort::server::completions_codec_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<openai::CompletionsRequest> ReadCompletionsRequest(const std::string& body) {
  MemoryMeter meter;
  openai::CompletionsRequest request;
  const absl::Status read = server::ReadCompletionsRequest(body, {.prompt_tokens = 5}, meter, request);
  if (!read.ok()) return read;
  return request;
}

std::string ErrorOf(const std::string& body) {
  const absl::Status status = ReadCompletionsRequest(body).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CompletionsCodec, FieldsThatAreAbsentOrNullHaveOpenAisDefaults) {
  const auto request = ReadCompletionsRequest(R"({"prompt": "a", "max_tokens": null, "seed": null, "stop": null})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->max_tokens(), 16);
  EXPECT_EQ(request->n(), 1);
  EXPECT_EQ(request->temperature(), 1);
  EXPECT_EQ(request->top_p(), 1);
  EXPECT_FALSE(request->has_seed() || request->has_logprobs() || request->stream());
}

TEST(CompletionsCodec, APromptHasFourForms) {
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a"})")->prompts(0).text(), "a");
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": ["a", "b"]})")->prompts(1).text(), "b");
  EXPECT_THAT(ReadCompletionsRequest(R"({"prompt": [5, 6]})")->prompts(0).ids().ids(), ElementsAre(5, 6));
  EXPECT_THAT(ReadCompletionsRequest(R"({"prompt": [[5], [6, 7]]})")->prompts(1).ids().ids(), ElementsAre(6, 7));
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
  EXPECT_EQ(ErrorOf(R"({"prompt": )" + list_of(65, "\"\"")), "the body: prompt has more than 64 elements");
  EXPECT_EQ(ErrorOf(R"({"prompt": )" + list_of(65, "[1]")), "the body: prompt has more than 64 elements");
  EXPECT_EQ(ErrorOf(R"({"prompt": )" + list_of(6, "7")), "the body: prompt has more than 5 numbers");
  EXPECT_EQ(ErrorOf(R"({"prompt": [)" + list_of(6, "7")), "the body: prompt has more than 5 numbers");
  EXPECT_EQ(ErrorOf(R"({"stop": )" + list_of(17, "\"\"")), "the body: stop has more than 16 elements");
  std::string biases = R"({"logit_bias": {)";
  for (int i = 0; i <= 1024; ++i) biases += "\"" + std::to_string(i) + "\":1,";
  EXPECT_EQ(ErrorOf(biases), "the body: logit_bias has more than 1024 elements");
}

TEST(CompletionsCodec, ASeedHas64BitsWithOrWithoutSign) {
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a", "seed": -1})")->seed(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ReadCompletionsRequest(R"({"prompt": "a", "seed": 18446744073709551615})")->seed(),
            std::numeric_limits<uint64_t>::max());
}

TEST(CompletionsCodec, FieldsWithoutMeaningAreRefusedByName) {
  EXPECT_THAT(ErrorOf(R"({"prompt": "a", "suffix": "b"})"), HasSubstr("suffix is not supported"));
  EXPECT_THAT(ErrorOf(R"({"prompt": "a", "nonsense": 1})"), HasSubstr("\"nonsense\" is not a field"));
  EXPECT_TRUE(ReadCompletionsRequest(R"({"prompt": "a"})").ok());
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
