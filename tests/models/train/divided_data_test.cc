#include "models/train/divided_data.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::divided_data_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Examples = std::vector<LabelledExample>;

// The examples "LABEL CONTENT", with places from data:1 on. Labels are separated by "+".
Examples ExamplesOf(const std::vector<std::pair<std::vector<std::string>, std::string>>& rows) {
  Examples examples;
  for (const auto& [labels, content] : rows) {
    examples.push_back({labels, "data:" + std::to_string(examples.size() + 1), {content}});
  }
  return examples;
}

// `count` different examples of a label.
void Append(const std::string& label, int count, Examples& examples) {
  for (int i = 0; i < count; ++i) examples.push_back({{label}, "data", {label + std::to_string(i)}});
}

std::string Error(Examples train, const Division& division = {}, Examples held_out = {}) {
  return std::string(Divide(std::move(train), std::move(held_out), division, "data").status().message());
}

TEST(Divide, HoldsOutAPartOfEachClassAndKeepsEqualExamplesTogether) {
  Examples examples;
  for (int i = 0; i < 40; ++i) {
    examples.push_back({{i % 2 == 0 ? "x" : "y"}, "data", {"query", "text " + std::to_string(i / 4)}});
  }
  const auto data = Divide(examples, {}, {.held_out_fraction = 0.2}, "data");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train.size() + data->held_out.size(), 40U);
  std::set<std::string> trained, held_out;
  for (const LabelledExample& one : data->train) trained.insert(one.labels.front() + one.content.back());
  for (const LabelledExample& one : data->held_out) held_out.insert(one.labels.front() + one.content.back());
  EXPECT_EQ(held_out.size(), 4U) << "a fifth of the 10 different texts of each class";
  EXPECT_EQ(trained.size(), 16U);
  for (const std::string& text : held_out) EXPECT_FALSE(trained.contains(text)) << text;
}

TEST(Divide, AllRareClassesAreNamedAtOnceWithTheWayOut) {
  Examples examples;
  Append("often", 5, examples);
  Append("odd", 1, examples);
  examples.push_back({{"twin"}, "data", {"equal"}});
  examples.push_back({{"twin"}, "data", {"equal"}});
  EXPECT_THAT(Error(examples), HasSubstr("data: 2 of 3 labels have only 1 different example, but one to train on and "
                                         "one to hold out are needed: 'odd' (1), 'twin' (1); add examples, leave these "
                                         "labels out with --min-examples=2, or give other data to evaluate on with "
                                         "--held-out"));
  EXPECT_EQ(Error(examples, {}, {{{"odd"}, "held", {"o"}}}), "") << "none needs to be held out";
  for (int i = 0; i < 60; ++i) Append("rare " + std::to_string(i), 1, examples);
  EXPECT_THAT(Error(examples), HasSubstr("62 of 63 labels"));
  EXPECT_THAT(Error(examples), HasSubstr("and 42 more; add examples")) << "62, of which 20 are shown";
  Examples numbers = ExamplesOf({{{"1.5"}, "a"}, {{"2.5"}, "b"}});
  EXPECT_THAT(Error(numbers), HasSubstr("if the labels are quantities, give --problem=regression"));
}

TEST(Divide, RareClassesAreLeftOutOnRequest) {
  Examples examples;
  Append("a", 5, examples);
  Append("b", 3, examples);
  Append("c", 2, examples);
  Append("d", 1, examples);
  const auto data = Divide(examples, {{{"a"}, "held", {"x"}}, {{"d"}, "held", {"y"}}}, {.min_examples = 3}, "data");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->description.labels, ElementsAre("a", "b"));
  EXPECT_EQ(data->train.size(), 8U);
  EXPECT_EQ(data->held_out.size(), 1U);
  EXPECT_THAT(data->description.notes,
              ElementsAre("--min-examples=3 leaves out 2 labels and 3 examples: 'c' (2), 'd' (1)."));
  EXPECT_THAT(Error(examples, {.min_examples = 9}), HasSubstr("data: no label is left"));
  EXPECT_THAT(Error(examples, {.min_examples = 2}, {{{"d"}, "held", {"y"}}}),
              HasSubstr("--min-examples=2 leaves no example in the data of --held-out"));
}

TEST(Divide, OneOfSeveralLabelsIsLeftOutWithoutItsExample) {
  const Examples examples =
      ExamplesOf({{{"a"}, "1"}, {{"a", "odd"}, "2"}, {{"b"}, "3"}, {{"b"}, "4"}, {{"odd2"}, "5"}});
  const Division several{.problem = ProblemType::kMultiLabel, .min_examples = 2};
  const auto data = Divide(examples, {{{"a", "odd"}, "held", {"x"}}}, several, "data");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->description.labels, ElementsAre("a", "b"));
  ASSERT_EQ(data->train.size(), 5U);
  EXPECT_THAT(data->train[1].labels, ElementsAre("a"));
  EXPECT_THAT(data->train[4].labels, IsEmpty()) << "an example without a label is an example, too";
  EXPECT_THAT(data->held_out[0].labels, ElementsAre("a"));
}

TEST(Divide, EqualExamplesAreNoted) {
  const auto data = Divide(
      ExamplesOf({{{"a"}, "x"}, {{"b"}, "x"}, {{"a"}, "y"}, {{"b"}, "z"}, {{"b"}, "z"}, {{"b"}, "y"}, {{"a"}, "y"}}),
      {{{"a"}, "held", {"x"}}, {{"a"}, "held", {"x"}}, {{"a"}, "held", {"new"}}}, {}, "data");
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->description.notes.size(), 2U);
  EXPECT_THAT(data->description.notes[0], HasSubstr("Equal examples with different labels: 2, for example data:"));
  EXPECT_THAT(data->description.notes[0],
              ::testing::AnyOf(HasSubstr("data:1 ('a') and data:2 ('b')"), HasSubstr("data:3 ('a') and data:6 ('b')")));
  EXPECT_EQ(data->description.notes[1], "Held-out examples that are also in the training data: 2.");
}

TEST(Divide, DataThatCannotBeLearntAreRefused) {
  EXPECT_THAT(Error(ExamplesOf({{{"a"}, "x"}, {{"a"}, "y"}})), HasSubstr("all examples have the label 'a'"));
  EXPECT_THAT(Error(ExamplesOf({{{"a", "b"}, "x"}, {{"a", "b"}, "y"}}), {.problem = ProblemType::kMultiLabel}),
              HasSubstr("data: all examples have the same labels ('a', 'b'); at least two must differ"));
  std::vector<std::string> many;
  for (int i = 10; i < 40; ++i) many.push_back(std::to_string(i));
  EXPECT_THAT(Error(ExamplesOf({{many, "x"}, {many, "y"}}), {.problem = ProblemType::kMultiLabel}),
              HasSubstr("'29' and 10 more); at least"))
      << "20 are shown";
  EXPECT_THAT(Error(ExamplesOf({{{"1"}, "x"}, {{"2"}, "x"}}), {.problem = ProblemType::kRegression}),
              HasSubstr("has only 1 different example"));
}

TEST(Divide, ARegressionHoldsOutAPartOfAll) {
  Examples examples;
  for (int i = 0; i < 50; ++i) examples.push_back({{std::to_string(i)}, "data", {"text " + std::to_string(i)}});
  const auto data = Divide(examples, {}, {.problem = ProblemType::kRegression}, "data");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->held_out.size(), 5U) << "a tenth";
  EXPECT_THAT(data->description.labels, IsEmpty());
}

}  // namespace longshort::models::divided_data_test
