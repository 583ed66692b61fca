#include <string>
#include <vector>

#include "base/strict_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/status_matchers.h"

namespace longshort::json_view_test {

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

}  // namespace longshort::json_view_test
