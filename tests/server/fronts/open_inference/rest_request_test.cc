#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/fronts/open_inference/rest_messages.h"
#include "tests/base/status_matchers.h"
#include "tests/server/fronts/open_inference/requests.h"

namespace longshort::server::rest_request_test {

using ::testing::HasSubstr;

constexpr int64_t kMaxBytes = 1 << 20;

struct Read {
  absl::Status status;
  inference::ModelInferRequest request;
  BinaryOutputs outputs;
};

Read ReadRequest(const std::string& json, const std::string& binary = "", int64_t max_bytes = kMaxBytes) {
  Read read;
  read.request.set_model_name("m");
  MemoryMeter meter;
  read.status = ReadRestRequest(json, binary, max_bytes, meter, read.request, read.outputs);
  return read;
}

// A request with one input.
std::string Input(const std::string& datatype, const std::string& shape, const std::string& data) {
  return absl::StrCat(R"({"inputs":[{"name":"x","datatype":")", datatype, R"(","shape":)", shape, R"(,"data":)", data,
                      "}]}");
}

template <typename Value>
std::string Raw(const std::vector<Value>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

std::string RawOf(const std::string& datatype, const std::string& shape, const std::string& data) {
  const Read read = ReadRequest(Input(datatype, shape, data));
  EXPECT_TRUE(read.status.ok()) << read.status;
  return read.request.raw_input_contents_size() == 1 ? read.request.raw_input_contents(0) : "";
}

std::string ErrorOf(const std::string& json, const std::string& binary = "") {
  return RefusalOf(ReadRequest(json, binary).status);
}

TEST(RestRequest, DataBecomesRawContents) {
  EXPECT_EQ(RawOf("UINT8", "[2,2]", "[[0,255],[1,2]]"), Raw<uint8_t>({0, 255, 1, 2}));
  EXPECT_EQ(RawOf("INT32", "[3]", "[-2147483648,2147483647,-0]"), Raw<int32_t>({INT32_MIN, INT32_MAX, 0}));
  EXPECT_EQ(RawOf("FP32", "[4]", "[1,0.1,-3e2,18446744073709551615]"), Raw<float>({1, 0.1F, -300, 1.8446744e19F}));
  EXPECT_EQ(RawOf("BYTES", "[3]", R"(["", "a\u0000b", "\ud83c\udf3b"])"),
            RawBytes({"", std::string("a\0b", 3), "\xF0\x9F\x8C\xBB"}));
  EXPECT_EQ(RawOf("BYTES", "[2,1]", R"(["a", "b"])"), RawOf("BYTES", "[2,1]", R"([["a"], ["b"]])"));
}

TEST(RestRequest, ANumberWithoutAFractionIsWhole) {
  EXPECT_EQ(RawOf("INT32", "[2.0,1e0]", "[16.0,-4e0]"), Raw<int32_t>({16, -4}));
  EXPECT_EQ(RawOf("UINT8", "[1]", "[255.0]"), Raw<uint8_t>({255}));
  const Read read = ReadRequest(R"({"parameters":{"a":16.0,"b":1e300}})");
  EXPECT_EQ(read.request.parameters().at("a").int64_param(), 16);
  EXPECT_EQ(read.request.parameters().at("b").double_param(), 1e300);
}

TEST(RestRequest, AFieldThatIsNullIsAbsent) {
  const Read read = ReadRequest(
      R"({"id":null,"x":null,"outputs":null,"inputs":[{"name":"a","datatype":"UINT8","shape":[1],"data":[1],"y":null}]})");
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(ErrorOf(R"({"x":1})"), HasSubstr("unknown field \"x\"; the fields are id"));
}

TEST(RestRequest, FieldsMayComeInAnyOrder) {
  const Read read = ReadRequest(
      R"({"inputs":[{"data":[1,2],"shape":[2],"name":"a","datatype":"UINT8"},
                    {"name":"b","datatype":"INT32","data":[[3]],"shape":[1,1]}],"id":"i"})");
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.request.id(), "i");
  EXPECT_EQ(read.request.raw_input_contents(0), Raw<uint8_t>({1, 2}));
  EXPECT_EQ(read.request.raw_input_contents(1), Raw<int32_t>({3}));
}

TEST(RestRequest, BinaryDataIsTakenInTheOrderOfTheInputs) {
  const Read read = ReadRequest(
      R"({"inputs":[{"name":"a","datatype":"UINT8","shape":[3],"parameters":{"binary_data_size":3}},
                    {"name":"b","datatype":"UINT8","shape":[1],"data":[7]},
                    {"name":"c","datatype":"FP16","shape":[1],"parameters":{"binary_data_size":2,"other":1}}]})",
      "abcde");
  ASSERT_TRUE(read.status.ok()) << read.status;
  ASSERT_EQ(read.request.raw_input_contents_size(), 3);
  EXPECT_EQ(read.request.raw_input_contents(0), "abc");
  EXPECT_EQ(read.request.raw_input_contents(1), "\x07");
  EXPECT_EQ(read.request.raw_input_contents(2), "de");
  EXPECT_TRUE(read.request.inputs(0).parameters().empty());
  EXPECT_EQ(read.request.inputs(2).parameters().size(), 1);
}

TEST(RestRequest, ParametersKeepTheirTypes) {
  const Read read = ReadRequest(
      R"({"parameters":{"a":true,"b":-1,"c":18446744073709551615,"d":0.5,"e":"x","stop":["p","q"],"g":null,
                        "binary_data_output":true},
          "outputs":[{"name":"y"},{"name":"z","parameters":{"binary_data":false,"classification":2}}]})");
  ASSERT_TRUE(read.status.ok()) << read.status;
  const auto& parameters = read.request.parameters();
  EXPECT_EQ(parameters.size(), 6);
  EXPECT_TRUE(parameters.at("a").bool_param());
  EXPECT_EQ(parameters.at("b").int64_param(), -1);
  EXPECT_EQ(parameters.at("c").uint64_param(), UINT64_MAX);
  EXPECT_EQ(parameters.at("d").double_param(), 0.5);
  EXPECT_EQ(parameters.at("e").string_param(), "x");
  EXPECT_EQ(parameters.at("stop").string_param(), R"(["p","q"])");
  EXPECT_TRUE(read.outputs.Has("y"));
  EXPECT_FALSE(read.outputs.Has("z"));
  EXPECT_EQ(read.request.outputs(1).parameters().size(), 1);
}

TEST(RestRequest, WrongElementsAreNamed) {
  EXPECT_EQ(ErrorOf(Input("INT32", "[2]", "[1,2147483648]")),
            "inputs[0].data[1] is 2147483648; it must be a whole number from -2147483648 to 2147483647, because the "
            "datatype is INT32");
  EXPECT_THAT(ErrorOf(Input("INT32", "[1]", "[1.5]")), HasSubstr("data[0] is 1.5; it must be a whole number"));
  EXPECT_THAT(ErrorOf(Input("INT32", "[1]", "[2147483648.0]")), HasSubstr("data[0] is 2147483648; it must be"));
  EXPECT_THAT(ErrorOf(Input("INT32", "[1.5]", "[1]")), HasSubstr("inputs[0].shape[0] is 1.5; it must be an integer"));
  EXPECT_THAT(ErrorOf(Input("FP32", "[1]", "[-4e38]")), HasSubstr("32-bit floating point"));
  EXPECT_THAT(ErrorOf(Input("FP32", "[1]", R"(["1"])")), HasSubstr(R"(inputs[0].data[0] is "1")"));
  EXPECT_THAT(ErrorOf(Input("BYTES", "[1]", "[false]")), HasSubstr("is false; it must be a string"));
  EXPECT_THAT(ErrorOf(Input("UINT8", "[2]", "[[1],2]")), HasSubstr("ragged"));
  EXPECT_THAT(ErrorOf(Input("UINT8", "[2]", "[1,[2]]")), HasSubstr("ragged"));
  EXPECT_THAT(ErrorOf(Input("UINT8", "[2]", "[[],[2]]")), HasSubstr("ragged"));
  EXPECT_THAT(ErrorOf(Input("UINT8", "[2]", "[[[2]],[3]]")), HasSubstr("ragged"));
  EXPECT_THAT(ErrorOf(Input("UINT8", "[1,2]", "[[1],[2]]")), HasSubstr("nesting of inputs[0].data is [2, 1]"));
  EXPECT_THAT(ErrorOf(Input("UINT8", "[3]", "[]")), HasSubstr("is 0; it must be 3"));
  EXPECT_THAT(ErrorOf(Input("FP64", "[1]", "[{}]")), HasSubstr("an object within the data"));
}

// Whatever the sizes of the numbers in the text, the contents are limited like a message.
TEST(RestRequest, ContentsAreLimited) {
  const std::string data = "[0,0,0,0,0,0]";
  EXPECT_TRUE(ReadRequest(Input("FP32", "[6]", data), "", 24).status.ok());
  EXPECT_EQ(ReadRequest(Input("FP32", "[6]", data), "", 15).status.code(), absl::StatusCode::kResourceExhausted);
}

inference::ModelInferResponse Answer(const std::string& datatype, const std::string& raw) {
  inference::ModelInferResponse answer;
  answer.set_model_name("m");
  answer.set_model_version("3");
  auto& output = *answer.add_outputs();
  output.set_name("y");
  output.set_datatype(datatype);
  output.add_shape(2);
  answer.add_raw_output_contents(raw);
  return answer;
}

std::string JsonOf(const std::string& datatype, const std::string& raw) {
  const absl::StatusOr<RestAnswer> written = WriteRestAnswer(Answer(datatype, raw), {});
  EXPECT_TRUE(written.ok()) << written.status();
  if (!written.ok()) return "";
  EXPECT_FALSE(written->json_bytes.has_value());
  const std::string before =
      absl::StrCat(R"({"model_name":"m","model_version":"3","outputs":[{"name":"y","datatype":")", datatype,
                   R"(","shape":[2],"data":)");
  EXPECT_EQ(written->body.substr(0, before.size()), before);
  return written->body.substr(before.size());
}

TEST(RestAnswer, NumbersHaveTheDigitsThatIdentifyThem) {
  EXPECT_EQ(JsonOf("FP32", Raw<float>({0.1F, -3e-45F})), "[0.1,-3e-45]}]}");
  EXPECT_EQ(JsonOf("FP64", Raw<double>({0.1, 1e300})), "[0.1,1e+300]}]}");
  EXPECT_EQ(JsonOf("INT64", Raw<int64_t>({INT64_MIN, INT64_MAX})), "[-9223372036854775808,9223372036854775807]}]}");
  EXPECT_EQ(JsonOf("INT32", Raw<int32_t>({-1, 7})), "[-1,7]}]}");
  EXPECT_EQ(JsonOf("BYTES", RawBytes({"a\"\n", "\xC3\xA9"})), "[\"a\\\"\\n\",\"\xC3\xA9\"]}]}");
}

TEST(RestAnswer, WhatJsonCannotHaveIsAnError) {
  for (const absl::Status& status : {WriteRestAnswer(Answer("BYTES", RawBytes({"a", "\xFF"})), {}).status(),
                                     WriteRestAnswer(Answer("FP32", Raw<float>({0, INFINITY})), {}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("output y has"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("binary_data"));
  }
}

TEST(RestAnswer, BinaryOutputsStandBehindTheJson) {
  inference::ModelInferResponse answer = Answer("FP32", Raw<float>({1, 2}));
  answer.set_id("i");
  (*answer.mutable_parameters())["seed"].set_string_param("7");
  (*answer.mutable_parameters())["count"].set_int64_param(2);
  auto& second = *answer.add_outputs();
  second.set_name("z");
  second.set_datatype("BYTES");
  second.add_shape(1);
  answer.add_raw_output_contents(RawBytes({"\xFF"}));
  const absl::StatusOr<RestAnswer> written = WriteRestAnswer(answer, {.by_name = {{"z", true}}});
  ASSERT_TRUE(written.ok()) << written.status();
  const std::string json = R"({"model_name":"m","model_version":"3","id":"i","parameters":{"count":2,"seed":"7"},)"
                           R"("outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[1,2]},)"
                           R"({"name":"z","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}}]})";
  EXPECT_EQ(written->json_bytes, json.size());
  EXPECT_EQ(written->body, json + RawBytes({"\xFF"}));
}

}  // namespace longshort::server::rest_request_test
