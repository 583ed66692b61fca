#include "base/strict_json.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/base/status_matchers.h"

namespace longshort::strict_json_test {

using Words = std::vector<std::string>;

TEST(StrictJson, ReadsAnObject) {
  const auto document = ParseJsonObject(R"({"a": [1, {"b": "c"}]})", "file");
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ((*document)["a"][1]["b"], "c");
}

TEST(StrictJson, RefusesWhatIsNoObject) {
  EXPECT_THAT(ParseJsonObject("[1]", "some.json"), Refuses(Words{"some.json", "array"}));
  EXPECT_THAT(ParseJsonObject("", "some.json"), Refuses(Words{"some.json", "not valid JSON"}));
  EXPECT_THAT(ParseJsonObject("{\"a\":}", "some.json"), Refuses(Words{"some.json", "byte 6"}));
}

TEST(StrictJson, RefusesBytesAfterTheObject) {
  EXPECT_THAT(ParseJsonObject("{} {}", "f"), Refuses(Words{"not valid JSON"}));
  EXPECT_THAT(ParseJsonObject(std::string_view("{}\0garbage", 10), "f"), Refuses(Words{"byte 3", "something follows"}));
}

TEST(StrictJson, RefusesAKeyThatStandsTwiceInOneObjectOnly) {
  EXPECT_THAT(ParseJsonObject(R"({"a": {"x": 1}, "b": {"x": 2}})", "f"), IsOk());
  EXPECT_THAT(ParseJsonObject(R"({"a": {"x": 1, "x": 2}})", "f"), Refuses(Words{"duplicate key 'x'"}));
  // The same key, written in two ways.
  EXPECT_THAT(ParseJsonObject(R"({"a": 1, "\u0061": 2})", "f"), Refuses(Words{"duplicate key 'a'"}));
}

TEST(StrictJson, RefusesInvalidUtf8) { EXPECT_THAT(ParseJsonObject("{\"\xFF\": 1}", "f"), Refuses(Words{"JSON"})); }

TEST(StrictJson, RefusesDeepNestingWithoutBuildingIt) {
  const std::string bomb = "{\"a\":" + std::string(10'000'000, '[');
  EXPECT_THAT(ParseJsonObject(bomb, "f"), Refuses(Words{"nested deeper than 16"}));
  const std::string objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text;
  }();
  EXPECT_THAT(ParseJsonObject(objects, "f"), Refuses(Words{"nested deeper than 16"}));
}

TEST(StrictJson, RefusesMoreElementsThanTheLimit) {
  JsonLimits limits;
  limits.elements = 10;
  EXPECT_THAT(ParseJsonObject("{\"a\":[1,2,3]}", "f", limits), IsOk());
  EXPECT_THAT(ParseJsonObject("{\"a\":[1,2,3,4,5,6,7,8,9,10]}", "f", limits), Refuses(Words{"more than 10 elements"}));
}

TEST(StrictJson, NumbersDoNotCountAsParts) {
  const JsonLimits limits = {.elements = 100, .parts = 4};
  EXPECT_THAT(ParseJsonObject("{\"a\":[1,2,3,4,5,6,true,null]}", "f", limits), IsOk());
  EXPECT_THAT(ParseJsonObject("{\"a\":[\"\",\"\"]}", "f", limits), Refuses(Words{"more than 4 strings, lists"}));
}

TEST(StrictJson, RefusesAListAtItsFirstElementTooMany) {
  const JsonListLimit lists[] = {{.key = "a", .elements = 2, .numbers = 3}};
  const JsonLimits limits = {.lists = lists};
  EXPECT_THAT(ParseJsonObject(R"({"a":["",[1,2,3]],"b":[1,2,3,4,5]})", "f", limits), IsOk());
  // What follows is not read: it is no JSON.
  EXPECT_THAT(ParseJsonObject(R"({"a":["","",""?)", "f", limits), Refuses(Words{"f: a has more than 2 elements"}));
  EXPECT_THAT(ParseJsonObject(R"({"a":[[],[1,2,3,4?)", "f", limits), Refuses(Words{"a has more than 3 numbers"}));
  EXPECT_THAT(ParseJsonObject(R"({"a":{"x":1,"y":1,"z"?)", "f", limits), Refuses(Words{"a has more than 2 elements"}));
}

TEST(StrictJson, ANumberHasTheTypeThatHoldsIt) {
  const auto document = ParseJsonObject(R"({"a": [-1, 18446744073709551615, 18446744073709551616, 0.5, -0]})", "f");
  ASSERT_THAT(document, IsOk());
  const nlohmann::json& list = (*document)["a"];
  EXPECT_EQ(list[0].get<int64_t>(), -1);
  EXPECT_EQ(list[1].get<uint64_t>(), UINT64_MAX);
  EXPECT_TRUE(list[2].is_number_float());
  EXPECT_EQ(list[3].get<double>(), 0.5);
  EXPECT_TRUE(list[4].is_number_integer());
  EXPECT_THAT(ParseJsonObject("{\"a\":1e999}", "f"), Refuses(Words{"byte 6", "out of range"}));
}

TEST(StrictJson, QuotesShortAndSafe) {
  EXPECT_EQ(QuoteForMessage("a\n\xFF"), "'a\\n\\xff'");
  EXPECT_EQ(QuoteForMessage(std::string(1000, 'x')), "'" + std::string(100, 'x') + "' (cut, 1000 bytes)");
}

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

JsonView Fields(const std::string& text) { return *JsonView::Parse(text, "config.json"); }

TEST(JsonView, ReadsEveryKind) {
  const JsonView fields = Fields(R"({"number": 2.5, "text": "s1", "integers": [1, -2], "numbers": [1, 0.5]})");
  EXPECT_TRUE(fields.Has("number"));
  EXPECT_FALSE(fields.Has("other"));
  EXPECT_EQ(*fields.Number("number"), 2.5);
  EXPECT_EQ(*fields.Text("text"), "s1");
  EXPECT_THAT(*fields.Integers("integers"), ElementsAre(1, -2));
  EXPECT_THAT(*fields.Numbers("numbers"), ElementsAre(1, 0.5));
}

TEST(JsonView, NamesTheFieldOfAnotherKind) {
  const JsonView fields = Fields(R"({"number": "2", "text": 3, "integers": [1, 2.5], "numbers": [[1]]})");
  EXPECT_THAT(fields.Number("number"), Refuses(Words{"config.json: number is", "a number"}));
  EXPECT_THAT(fields.Text("text"), Refuses(Words{"text is 3", "a string"}));
  EXPECT_THAT(fields.Integers("integers"), Refuses(Words{"integers is [1,2.5]", "integers"}));
  EXPECT_THAT(fields.Numbers("numbers"), Refuses(Words{"numbers is", "list of numbers"}));
  EXPECT_THAT(fields.Object("text"), Refuses(Words{"text is 3", "an object"}));
  EXPECT_THAT(fields.Number("other"), Refuses(Words{"other is missing"}));
}

TEST(JsonView, ShowsAWholeNumberBeyond64BitsAsDigits) {
  const JsonView fields = Fields(R"({"seed": 18446744073709551616})");
  EXPECT_THAT(fields.Integer("seed"), Refuses(Words{"seed is 18446744073709551616;", "integer"}));
}

TEST(JsonView, NamesAnObjectWithinWithItsPlace) {
  const auto inner = Fields(R"({"preprocessing": {"height": "x"}})").Object("preprocessing");
  ASSERT_THAT(inner, IsOk());
  EXPECT_THAT(inner->Integer("height"), Refuses(Words{"config.json: preprocessing.height is"}));
}

TEST(JsonView, ANullIsAbsentInARequestAndAValueInAFile) {
  nlohmann::json document = {{"text", nullptr}, {"other", nullptr}, {"number", 16.0}};
  const JsonView request(document);
  EXPECT_FALSE(request.Has("text"));
  EXPECT_THAT(request.Text("text"), Refuses(Words{"text is missing; it must be a string"}));
  EXPECT_THAT(request.RefuseUnknown({"text", "number"}), IsOk());
  EXPECT_EQ(*request.Integer("number"), 16);
  EXPECT_THAT(Fields(R"({"text": null})").Text("text"), Refuses(Words{"text is null; it must be a string"}));
}

TEST(JsonView, NamesElementsAndUnknownFieldsByTheirPath) {
  nlohmann::json document = {{"inputs", {{{"name", "a"}}, {{"nam", "b"}}}}};
  const JsonView second = JsonView(document).At("inputs").At(1);
  EXPECT_THAT(second.Text("name"), Refuses(Words{"inputs[1].name is missing"}));
  EXPECT_THAT(second.RefuseUnknown({"name"}),
              Refuses(Words{"unknown field \"nam\" of inputs[1]; the fields are name"}));
}

}  // namespace longshort::strict_json_test
