#include "models/train/labelled_data.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/train/held_out_figures.h"
#include "tests/models/train/trained_weights.h"
#include "tests/models/train/training_folder.h"

namespace longshort::models::labelled_data_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr ProblemType kSingle = ProblemType::kSingleLabel;

std::string LabelError(const std::vector<std::string>& labels, ProblemType problem = kSingle) {
  return std::string(CheckLabelsDiffer(labels, problem, "data.csv").message());
}

TEST(Labels, OneIsNotEnoughToChooseFrom) {
  EXPECT_THAT(LabelError({"pos"}),
              HasSubstr("data.csv: all examples have the label 'pos'; a classifier needs at least"));
  EXPECT_EQ(LabelError({"pos"}, ProblemType::kMultiLabel), "") << "an example may lack it";
  EXPECT_EQ(LabelError({"neg", "pos"}), "");
}

TEST(Labels, ThoseThatDifferOnlyInTheirWritingAreNamedTogether) {
  EXPECT_THAT(LabelError({"neg", "pos", "pos "}), HasSubstr("the form of a number: 'pos', 'pos '; write them"));
  EXPECT_THAT(LabelError({"Pos", "neg", "pos"}), HasSubstr(": 'Pos', 'pos'; write"));
  EXPECT_THAT(LabelError({"\xc3\x89t\xc3\xa9", "hiver", "\xc3\xa9t\xc3\xa9"}),
              HasSubstr(": '\xc3\x89t\xc3\xa9', '\xc3\xa9t\xc3\xa9'; write"));
  EXPECT_THAT(LabelError({"\xd0\x94\xd0\xb0", "\xd0\xb4\xd0\xb0"}), HasSubstr(": '\xd0\x94\xd0\xb0', '")) << "Cyrillic";
  EXPECT_THAT(LabelError({"\xce\xa3", "\xcf\x82", "\xcf\x83"}),
              HasSubstr(": '\xce\xa3', '\xcf\x82', '\xcf\x83'; write"))
      << "Greek, where the small sigma has two forms";
  EXPECT_EQ(LabelError({"\xc3\xa9t\xc3\xa9", "ete", "\xff\xfe", "\xff\xff"}), "");
  EXPECT_THAT(LabelError({"a b", "a  b",
                          "a\xc2\xa0"
                          "b"}),
              HasSubstr("'a b', 'a  b', 'a\xc2\xa0"
                        "b'"));
  EXPECT_THAT(LabelError({"\u3000a\u2009b", "a b"}), HasSubstr("a\u2009b', 'a b'; write")) << "wide and thin spaces";
  for (const char* invisible : {"\ufeff", "\u200b", "\u200f", "\u00ad"}) {
    EXPECT_THAT(LabelError({"a", std::string(invisible) + "a"}), HasSubstr("; write")) << "invisible characters";
  }
  EXPECT_THAT(LabelError({"1", "1.0", "2", "2.0", "3"}), HasSubstr(": '1', '1.0'; '2', '2.0'; write"));
  EXPECT_EQ(LabelError({"1", "1.5", "1a", "a b", "ab", "nan"}), "");
  EXPECT_EQ(LabelError({"12345678901234567890", "12345678901234567891"}), "") << "equal as double";
  EXPECT_THAT(LabelError({"Pos", "pos"}, ProblemType::kMultiLabel), HasSubstr("'Pos', 'pos'"));
  std::vector<std::string> many;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    many.push_back({letter});
    many.push_back({letter, ' '});
  }
  EXPECT_THAT(LabelError(many), HasSubstr("'j', 'j '; 16 more groups; write")) << "of 26 groups, the first 10";
}

TEST(Labels, ALetterMayBeOneCharacterOrALetterAndMarks) {
  const auto expect_alike = [](const std::string& one, const std::string& other) {
    EXPECT_THAT(LabelError({one, "else", other}),
                HasSubstr("the form of a number: '" + one + "', '" + other + "'; write"));
  };
  expect_alike("\u00e9t\u00e9", "e\u0301te\u0301");
  expect_alike("\u00c9t\u00e9", "e\u0301te\u0301");  // and by case
  expect_alike("\u1ea5", "a\u0302\u0301");           // a letter with two marks
  expect_alike("\u1e69", "s\u0307\u0323");           // in any order
  expect_alike("\u0439", "\u0438\u0306");
  expect_alike("\u3050", "\u304f\u3099");
  expect_alike("\u0622\u0625", "\u0627\u0653\u0627\u0655");  // an alef with a madda or a hamza
  expect_alike("\u0628\u0651\u064e", "\u0628\u064e\u0651");  // marks without a character of their own
  expect_alike("\u0995\u09cb", "\u0995\u09c7\u09be");        // a vowel of two parts
  expect_alike("\u2126", "\u03a9");                          // one letter twice in Unicode
  expect_alike("\ud55c\uae00", "\u1112\u1161\u11ab\u1100\u1173\u11af");
  EXPECT_EQ(LabelError({"\u00e9", "\u00e8", "e", "e\u0302", "\u0301", "\ud55c", "\ud558"}), "");
}

TEST(Targets, AreClassesOrNumbers) {
  const std::vector<std::string> labels = {"a", "b", "c"};
  const std::vector<LabelledExample> sets = {{{"a", "c"}, "x:1", {"t"}}, {{}, "x:2", {"t"}}};
  const auto several = TargetsOf(sets, labels, ProblemType::kMultiLabel);
  ASSERT_TRUE(several.ok()) << several.status();
  const at::Tensor rows = TargetRows(*several, ProblemType::kMultiLabel, 3);
  EXPECT_TRUE(rows.equal(at::tensor({1., 0., 1., 0., 0., 0.}).to(at::kFloat).view({2, 3})));

  const std::vector<LabelledExample> numbers = {{{"-1.5"}, "x:1", {"t"}}, {{"4"}, "x:2", {"t"}}};
  const auto regression = TargetsOf(numbers, {}, ProblemType::kRegression);
  ASSERT_TRUE(regression.ok()) << regression.status();
  EXPECT_TRUE(TargetRows(*regression, ProblemType::kRegression, 1).equal(at::tensor({-1.5F, 4.F}).view({2, 1})));
  const NumberScale scale = ScaleOf(*regression);
  EXPECT_DOUBLE_EQ(scale.mean, 1.25);
  EXPECT_DOUBLE_EQ(scale.deviation, 2.75) << "both are as far from the mean";
}

TEST(Targets, ErrorsNameThePlaceAndTheLabel) {
  const std::vector<LabelledExample> unknown = {{{"z"}, "data.csv:7", {"t"}}};
  EXPECT_THAT(TargetsOf(unknown, std::vector<std::string>{"a"}, kSingle).status().message(),
              HasSubstr("data.csv:7: label 'z' is not in the training data"));
  const std::vector<LabelledExample> green = {{{"gr\xc3\xbcn"}, "data.csv:8", {"t"}}};
  EXPECT_THAT(TargetsOf(green, std::vector<std::string>{"a"}, kSingle).status().message(),
              HasSubstr("data.csv:8: label 'gr\xc3\xbcn' is not"));
  for (const char* broken : {"3,5", "good", "", "nan", "inf", "1e99"}) {
    const std::vector<LabelledExample> examples = {{{broken}, "data.csv:7", {"t"}}};
    EXPECT_THAT(
        TargetsOf(examples, {}, ProblemType::kRegression).status().message(),
        HasSubstr(std::string("data.csv:7: label is '") + broken + "'; a regression needs a number such as 3.5"));
  }
}

TEST(ClassFolders, AreReadInOrderWithoutHiddenFiles) {
  const TrainingFolder folder;
  for (const char* file :
       {"texts/pos/b.txt", "texts/neg/a.txt", "texts/neg/.DS_Store", "texts/.git/x", "texts/README"}) {
    folder.Write(file, file);
  }
  const auto examples = ReadClassFolders(folder.Path("texts"));
  ASSERT_TRUE(examples.ok()) << examples.status();
  ASSERT_EQ(examples->size(), 2U);
  EXPECT_THAT((*examples)[0].labels, ElementsAre("neg"));
  EXPECT_THAT((*examples)[1].content, ElementsAre("texts/pos/b.txt"));
  EXPECT_EQ((*examples)[1].place, folder.Path("texts/pos/b.txt"));
  EXPECT_THAT(ReadClassFolders(folder.Path("missing")).status().message(), HasSubstr("missing"));
}

}  // namespace longshort::models::labelled_data_test
