#include "server/fronts/json/json_message.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "longshort/v1/inference.pb.h"
#include "server/call/message_size.h"
#include "tests/base/status_matchers.h"

namespace longshort::server {
namespace {

using Words = std::vector<std::string>;
using v1::ClassifyImageRequest;
using v1::GenerateRequest;
using v1::ScoreTextRequest;

absl::Status Read(const std::string& json, google::protobuf::Message& message) {
  MemoryMeter meter;
  return ReadJson(json, message, meter);
}

template <typename Message>
absl::Status Read(const std::string& json) {
  Message message;
  return Read(json, message);
}

TEST(JsonMessageTest, ReadsWhatProtobufReads) {
  for (const std::string json :
       {R"({})", " {\t}\r\n", R"({"model":{"name":"a","version":"7"},"prompt":{"text":"x"},"maxTokens":"9"})",
        R"({"model":{"version":7},"max_tokens":9, "completions":1e1, "topAlternatives": 5.0 , "echo":true})",
        R"({"sampling":{"temperature":0.25,"topP":1e-3,"seed":"18446744073709551615","logitBias":{"7":-1.5,"-8":2}}})",
        R"({"sampling":{"temperature":"NaN","topP":"Infinity","minP":"-Infinity","seed":18446744073709551615}})",
        R"({"sampling":{"temperature":-0.0,"topP":1.7976931348623157e308,"minP":"2.5"}})",
        R"({"stop":["a\"\\\/\b\f\n\r\t","\u0000\u00e9\u20AC\ud83d\uDE00","é€😀"],"prompt":{"raw":"+/+AAA=="}})",
        R"({"prompt":{"raw":"-_-AAA"}})", R"({"prompt":{"raw":"AAAA"}})", R"({"prompt":{"ids":{"ids":[1,-2,"3"]}}})",
        R"({"maxTokens":-9223372036854775808,"completions":-2147483648,"topAlternatives":2147483647})",
        R"({"prompt":{"text":""},"session":null,"stop":[],"echo":false,"model":{}})"}) {
    GenerateRequest message, expected;
    EXPECT_THAT(Read(json, message), IsOk()) << json;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &expected).ok()) << json;
    EXPECT_EQ(message.DebugString(), expected.DebugString()) << json;
  }
}

TEST(JsonMessageTest, WhatIsNotJsonIsRefusedWithItsPlace) {
  for (const auto& [json, word] : std::vector<std::pair<std::string, std::string>>{
           {"", "empty"},
           {"  ", "empty"},
           {"[]", "expected an object, found a list, at byte 1"},
           {"null", "found null"},
           {"\xEF\xBB\xBF{}", "found something else"},
           {"{", "expected a key, found the end of the text, at byte 2"},
           {"{}{}", "something follows the message, at byte 3"},
           {"{} x", "something follows"},
           {R"({"echo" true})", "expected a colon"},
           {R"({"echo":true,})", "expected a key"},
           {R"({"echo":true "echo":true})", "expected a comma"},
           {R"({"echo":True})", "echo: expected true or false"},
           {R"({'echo':true})", "expected a key"},
           {R"({"stop":["a",]})", "stop[1]: expected a string"},
           {R"({"stop":["a" "b"]})", "stop[0]: expected a comma"},
           {R"({"stop":["a)", "stop[0]: the string has no end"},
           {R"({"stop":["\x"]})", "unknown escape"},
           {R"({"stop":["\)", "unknown escape"},
           {R"({"stop":["\u12"]})", "four hexadecimal digits"},
           {R"({"stop":["\u-123"]})", "four hexadecimal digits"},
           {"{\"stop\":[\"\n\"]}", "stop[0]: a string has a control character"},
           {std::string("{\"stop\":[\"\0\"]}", 14), "control character"},
           {R"({"stop":["\ud83d"]})", "half of a surrogate pair"},
           {R"({"stop":["\ud83d\ud83d"]})", "half of a surrogate pair"},
           {R"({"stop":["\ude00\ud83d"]})", "half of a surrogate pair"},
           {"{\"stop\":[\"\xff\"]}", "stop[0]: a string is not valid UTF-8, at byte 11"},
           {"{\"stop\":[\"\xc0\x80\"]}", "not valid UTF-8"},
           {"{\"stop\":[\"\xed\xa0\x80\"]}", "not valid UTF-8"},
           {"{\"\xff\":1}", "not valid UTF-8"}}) {
    EXPECT_THAT(Read<GenerateRequest>(json), Refuses(Words{word, "longshort.v1.GenerateRequest"})) << json;
  }
}

TEST(JsonMessageTest, AFieldThatIsNullIsAbsent) {
  GenerateRequest message;
  ASSERT_TRUE(Read(R"({"unknown":null,"echo":null,"model":{"name":"a","x":null},"y":null})", message).ok());
  EXPECT_EQ(message.model().name(), "a");
}

TEST(JsonMessageTest, WhatFieldsCannotHaveIsRefusedByName) {
  for (const auto& [json, word] : std::vector<std::pair<std::string, std::string>>{
           {R"({"max_token":1})", R"(unknown field "max_token"; the fields are model, prompt, max_tokens,)"},
           {R"({"model":{"x":1}})", R"(model: unknown field "x"; the fields are name, version)"},
           {R"({"echo":true,"echo":true})", "the key echo occurs twice"},
           {R"({"maxTokens":1,"max_tokens":1})", "the key max_tokens occurs twice"},
           {R"({"sampling":{"logitBias":{"1":1,"1":2}}})", R"(sampling.logit_bias: the key "1" occurs twice)"},
           {R"({"sampling":{"logitBias":{"1":1,"1.0":2}}})", R"(the key "1.0" occurs twice)"},
           {R"({"sampling":{"logitBias":{"x":1}}})", R"("x" is not a number)"},
           {R"({"sampling":{"logitBias":{"1":null}}})", "expected a number, found null"},
           {R"({"prompt":{"text":"a","raw":"AA"}})", "prompt.raw: another field of the same oneof, kind, is set"},
           {R"({"prompt":{"raw":"*"}})", "prompt.raw: the string is not base64"},
           {R"({"prompt":"a"})", "prompt: expected an object, found a string"},
           {R"({"stop":"a"})", "stop: expected a list, found a string"},
           {R"({"stop":[null]})", "stop[0]: expected a string, found null"},
           {R"({"stop":[[["a"]]]})", "expected a string, found a list"},
           {R"({"echo":1})", "echo: expected true or false, found a number"},
           {R"({"echo":"true"})", "echo: expected true or false, found a string"},
           {R"({"maxTokens":1.5})", "max_tokens: 1.5 is not a whole number"},
           {R"({"maxTokens":"1.5"})", R"(max_tokens: "1.5" is not a whole number)"},
           {R"({"maxTokens":true})", "max_tokens: expected a whole number, found a boolean"},
           {R"({"maxTokens":9223372036854775808})", "is not in [-9223372036854775808, 9223372036854775807]"},
           {R"({"maxTokens":"9223372036854775808"})", "is not in ["},
           {R"({"maxTokens":1e400})", "is not in ["},
           {R"({"completions":2147483648})", "is not in [-2147483648, 2147483647]"},
           {R"({"sampling":{"seed":-1}})", R"(sampling.seed: -1 is not in [0, 18446744073709551615])"},
           {R"({"maxTokens":""})", R"("" is not a number)"},
           {R"({"maxTokens":" 1"})", R"(" 1" is not a number)"},
           {R"({"maxTokens":01})", R"("01" is not a number)"},
           {R"({"maxTokens":+1})", R"("+1" is not a number)"},
           {R"({"maxTokens":0x1})", "expected a comma"},
           {R"({"maxTokens":1.})", R"("1." is not a number)"},
           {R"({"sampling":{"temperature":.5}})", R"(".5" is not a number)"},
           {R"({"sampling":{"temperature":1e}})", R"("1e" is not a number)"},
           {R"({"sampling":{"temperature":NaN}})", "expected a number"},
           {R"({"sampling":{"temperature":-Infinity}})", R"("-" is not a number)"},
           {R"({"sampling":{"temperature":1e309}})", "sampling.temperature: 1e309 is too large"},
           {R"({"sampling":{"temperature":"1e309"}})", R"(sampling.temperature: "1e309" is too large)"},
           {R"({"sampling":{"logitBias":{"1":1e39}}})", "sampling.logit_bias: 1e39 is too large"}}) {
    EXPECT_THAT(Read<GenerateRequest>(json), Refuses(Words{word, "longshort.v1.GenerateRequest"})) << json;
  }
}

TEST(JsonMessageTest, NumbersTooSmallAreZero) {
  GenerateRequest message;
  ASSERT_THAT(Read(R"({"sampling":{"temperature":1e-400}})", message), IsOk());
  EXPECT_EQ(message.sampling().temperature(), 0);
}

TEST(JsonMessageTest, TheNumberOfMessagesIsLimited) {
  const auto inputs = [](int64_t count) {
    std::string json = R"({"inputs":[{})";
    for (int64_t i = 1; i < count; ++i) json += ",{}";
    return json + "]}";
  };
  EXPECT_THAT(Read<ScoreTextRequest>(inputs(kMaxElements - 1)), IsOk());
  EXPECT_THAT(Read<ScoreTextRequest>(inputs(kMaxElements)), Refuses(Words{"inputs[16383]", "more than 16384"}));
  EXPECT_THAT(Read<GenerateRequest>(absl::StrCat(R"({"stop":[)", std::string(100'000, '['))),
              Refuses(Words{"stop[0]: expected a string, found a list"}));
  EXPECT_THAT(Read<GenerateRequest>(std::string(100'000, '[')), Refuses(Words{"found a list, at byte 1"}));
  std::string many = R"({"images":[{"tensor":{"floatValues":{"values":[0)";
  for (int i = 0; i < 100'000; ++i) many += ",0.5";
  EXPECT_THAT(Read<ClassifyImageRequest>(many + "]}}}]}"), IsOk()) << "numbers take at most the memory of their text";
}

TEST(JsonMessageTest, ErrorsAreShort) {
  const std::string long_text(100'000, 'x');
  for (const std::string& json :
       {absl::StrCat("{\"", long_text, "\":1}"), absl::StrCat(R"({"maxTokens":")", long_text, "\"}"),
        absl::StrCat(R"({"maxTokens":)", std::string(100'000, '1'), "}")}) {
    const absl::Status status = Read<GenerateRequest>(json);
    EXPECT_FALSE(status.ok());
    EXPECT_LT(status.message().size(), 500);
  }
}

TEST(JsonMessageTest, WritesWhatProtobufReads) {
  v1::ScoreTextResponse message;
  v1::TextScore& score = *message.add_scores();
  score.set_log_likelihood(-0.1);
  score.set_token_count(std::numeric_limits<int64_t>::min());
  score.set_bits_per_byte(0);  // it has presence
  for (int i = 0; i < 3; ++i) {
    v1::TokenLogProbability& token = *score.add_tokens();
    token.set_id(i);
    token.set_raw(std::string("\x00\xff\xfe\x01", 4));
    token.set_log_probability(-0.1F);
    token.add_alternatives()->set_log_probability(-std::numeric_limits<float>::infinity());
  }
  message.mutable_model()->set_name("a\"\\\n\x01\x7f é€😀</script>");
  const std::string json = WriteJson(message);
  v1::ScoreTextResponse read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &read).ok()) << json;
  EXPECT_EQ(read.DebugString(), message.DebugString());
  v1::ScoreTextResponse own;
  ASSERT_THAT(Read(json, own), IsOk());
  EXPECT_EQ(own.DebugString(), message.DebugString());
  EXPECT_THAT(json,
              ::testing::HasSubstr(R"("logLikelihood":-0.1,"tokenCount":"-9223372036854775808","bitsPerByte":0)"));
  EXPECT_THAT(json, ::testing::HasSubstr(R"("logProbability":-0.1,"alternatives":[{"logProbability":"-Infinity"}])"));
}

TEST(JsonMessageTest, WritesEnumsMapsAndDamagedText) {
  v1::Completion completion;
  completion.set_finish_reason(v1::FinishReason::FINISH_REASON_LENGTH);
  EXPECT_EQ(WriteJson(completion), R"({"finishReason":"FINISH_REASON_LENGTH"})");
  completion.set_finish_reason(static_cast<v1::FinishReason>(77));
  EXPECT_EQ(WriteJson(completion), R"({"finishReason":77})");
  GenerateRequest request;
  (*request.mutable_sampling()->mutable_logit_bias())[7] = 0.5;
  EXPECT_EQ(WriteJson(request), R"({"sampling":{"logitBias":{"7":0.5}}})");
  completion.Clear();
  completion.set_text("a\xff z\xe2\x82");
  EXPECT_EQ(WriteJson(completion), "{\"text\":\"a\uFFFD z\uFFFD\uFFFD\"}");
  EXPECT_EQ(WriteJson(v1::KeepAlive()), "{}");
}

TEST(JsonMessageTest, ThePlainFormHasTheContractsNamesAndNumbers) {
  v1::TokenizeResponse message;
  EXPECT_EQ(WriteJson(message, JsonForm::kPlain),
            R"({"ids":[],"pieces":[],"byte_begins":[],"byte_ends":[],"character_begins":[],"character_ends":[]})");
  message.mutable_model()->set_version(1LL << 62);
  EXPECT_EQ(WriteJson(message, JsonForm::kPlain),
            R"({"ids":[],"pieces":[],"model":{"name":"","version":4611686018427387904},)"
            R"("byte_begins":[],"byte_ends":[],"character_begins":[],"character_ends":[]})");
  v1::Completion completion;
  completion.set_finish_reason(v1::FinishReason::FINISH_REASON_LENGTH);
  EXPECT_THAT(WriteJson(completion, JsonForm::kPlain),
              ::testing::HasSubstr(R"("finish_reason":"FINISH_REASON_LENGTH")"));
}

}  // namespace
}  // namespace longshort::server
