#include "server/fronts/open_inference/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace longshort::server::parameters_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ParametersTest : public ::testing::Test {
 protected:
  Parameters::Map map_;
  const Parameters parameters_{map_, "parameters"};
};

TEST_F(ParametersTest, AValueMayComeInAnyFieldThatCanHoldIt) {
  map_["int64"].set_int64_param(-7);
  map_["uint64"].set_uint64_param(7);
  map_["double"].set_double_param(0.5);
  map_["digits"].set_string_param("42");
  map_["fraction"].set_string_param("0.25");
  map_["whole_text"].set_string_param("4.0");
  map_["bool"].set_bool_param(true);
  map_["false"].set_string_param("false");
  EXPECT_EQ(**parameters_.Integer("int64"), -7);
  EXPECT_EQ(**parameters_.Integer("uint64"), 7);
  map_["whole"].set_double_param(16.0);
  EXPECT_EQ(**parameters_.Integer("whole"), 16);
  EXPECT_EQ(**parameters_.Integer("digits"), 42);
  EXPECT_EQ(**parameters_.Integer("whole_text"), 4);
  EXPECT_EQ(**parameters_.Unsigned("whole_text"), 4);
  EXPECT_FALSE(parameters_.Integer("fraction").ok());
  EXPECT_EQ(**parameters_.Unsigned("uint64"), 7);
  EXPECT_EQ(**parameters_.Unsigned("digits"), 42);
  EXPECT_EQ(**parameters_.Number("double"), 0.5);
  EXPECT_EQ(**parameters_.Number("int64"), -7);
  EXPECT_EQ(**parameters_.Number("fraction"), 0.25);
  EXPECT_EQ(**parameters_.Boolean("bool"), true);
  EXPECT_EQ(**parameters_.Boolean("false"), false);
  EXPECT_EQ(**parameters_.Text("digits"), "42");
  EXPECT_EQ(*parameters_.Integer("none"), std::nullopt);
}

TEST_F(ParametersTest, InvalidValuesAreNamed) {
  map_["whole"].set_double_param(1.5);
  map_["large"].set_uint64_param(uint64_t{1} << 63);
  map_["huge"].set_double_param(1e300);
  EXPECT_FALSE(parameters_.Integer("huge").ok());
  map_["precise"].set_double_param(12345678.5);
  EXPECT_EQ(parameters_.Integer("precise").status().message(),
            "parameters.precise is 12345678.5; it must be a whole number of 64 bits");
  map_["less"].set_int64_param(-1);
  map_["word"].set_string_param("soon");
  map_["empty"];
  EXPECT_EQ(parameters_.Integer("whole").status().message(),
            "parameters.whole is 1.5; it must be a whole number of 64 bits");
  EXPECT_EQ(parameters_.Integer("large").status().message(),
            "parameters.large is 9223372036854775808; it must be a whole number of 64 bits");
  EXPECT_EQ(parameters_.Unsigned("less").status().message(),
            "parameters.less is -1; it must be a whole number of 64 bits, at least 0");
  EXPECT_EQ(parameters_.Number("word").status().message(), "parameters.word is \"soon\"; it must be a number");
  EXPECT_EQ(parameters_.Boolean("word").status().message(), "parameters.word is \"soon\"; it must be true or false");
  EXPECT_EQ(parameters_.Text("less").status().message(), "parameters.less is -1; it must be a string");
  EXPECT_EQ(parameters_.Text("empty").status().message(), "parameters.empty is unset; it must be a string");
}

TEST_F(ParametersTest, AnUnknownNameIsRejectedUnlessItIsTritons) {
  map_["triton_whatever"].set_bool_param(true);
  EXPECT_TRUE(parameters_.RefuseUnknown({SchemaField{"seed", "integer", ""}}).ok());
  map_["sead"].set_int64_param(1);
  EXPECT_EQ(
      parameters_.RefuseUnknown({SchemaField{"seed", "integer", ""}, SchemaField{"stop", "string", ""}}).message(),
      "a name of parameters is \"sead\"; it must be one of seed, stop");
}

TEST_F(ParametersTest, StopIsOneStringOrAList) {
  map_["stop"].set_string_param("\n\n");
  EXPECT_THAT(ReadGenerationParameters(parameters_)->stop, ElementsAre("\n\n"));
  map_["stop"].set_string_param(R"(["a]", "[", "\u00e9"])");
  EXPECT_THAT(ReadGenerationParameters(parameters_)->stop, ElementsAre("a]", "[", "\xC3\xA9"));
  for (const char* wrong : {"[", "[1]", "[\"a\"", "[\"a\"], \"b\": [", "[[\"a\"]]"}) {
    map_["stop"].set_string_param(wrong);
    EXPECT_THAT(ReadGenerationParameters(parameters_).status().message(), HasSubstr("a JSON list of strings")) << wrong;
  }
}

TEST_F(ParametersTest, AGenerationIsDescribedByTheNamesOfLongshortV1) {
  map_["max_tokens"].set_int64_param(5);
  map_["completions"].set_int64_param(2);
  map_["echo"].set_bool_param(true);
  map_["temperature"].set_double_param(0.5);
  map_["top_k"].set_int64_param(3);
  map_["top_p"].set_double_param(0.9);
  map_["min_p"].set_double_param(0.1);
  map_["repetition_penalty"].set_double_param(1.1);
  map_["frequency_penalty"].set_double_param(0.2);
  map_["presence_penalty"].set_double_param(0.3);
  map_["seed"].set_string_param("18446744073709551615");
  const GenerateCall call = *ReadGenerationParameters(parameters_);
  EXPECT_EQ(call.max_tokens, 5);
  EXPECT_EQ(call.completions, 2);
  EXPECT_TRUE(call.echo);
  EXPECT_EQ(call.sampling.temperature, 0.5);
  EXPECT_EQ(call.sampling.top_k, 3);
  EXPECT_EQ(call.sampling.top_p, 0.9);
  EXPECT_EQ(call.sampling.min_p, 0.1);
  EXPECT_EQ(call.sampling.repetition_penalty, 1.1);
  EXPECT_EQ(call.sampling.frequency_penalty, 0.2);
  EXPECT_EQ(call.sampling.presence_penalty, 0.3);
  EXPECT_EQ(call.seed, UINT64_MAX);
}

}  // namespace longshort::server::parameters_test
