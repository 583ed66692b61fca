#include "models/train/labelled_data.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::labelled_data_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LabelledTexts, ReadsOneObjectALineAndPassesOverEmptyLines) {
  const auto texts = ParseLabelledTexts(
      "{\"label\": \"pos\", \"text\": \"a b\"}\n\n{\"text\": \"\xc3\xa9\", \"label\": \"neg\"}", {}, "train.jsonl");
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_EQ(texts->size(), 2U);
  EXPECT_EQ((*texts)[0].label, "pos");
  EXPECT_THAT((*texts)[0].documents, ElementsAre("a b"));
  EXPECT_THAT((*texts)[1].documents, ElementsAre("\xc3\xa9"));
  EXPECT_THAT(LabelsOf(*texts), ElementsAre("neg", "pos"));
}

TEST(LabelledTexts, LinesMayEndAsWindowsEndsThem) {
  const auto texts = ParseLabelledTexts("\r\n{\"label\": \"a\", \"text\": \"x\"}\r\n\r\n", {}, "data.jsonl");
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT((*texts)[0].documents, ElementsAre("x"));
  EXPECT_THAT((*texts)[0].place, ::testing::EndsWith(":2"));
}

TEST(LabelledTexts, ReadsTwoDocumentsForModelsOfTwo) {
  const auto texts =
      ParseLabelledTexts(R"({"label": "same", "text": "one", "second_text": "two"})", {.documents = 2}, "pairs.jsonl");
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT((*texts)[0].documents, ElementsAre("one", "two"));
}

TEST(LabelledTexts, ErrorsNameFileLineAndField) {
  const struct {
    const char* lines;
    int64_t documents;
    const char* message;
  } cases[] = {
      {"{\"label\": \"a\", \"text\": \"x\"}\n{\"label\": \"a\", \"text\"", 1, "data.jsonl:2"},
      {R"({"label": "a"})", 1, "field 'text' is missing"},
      {R"({"text": "x"})", 1, "field 'label' is missing"},
      {R"({"label": 3, "text": "x"})", 1, "label is '3'; it must be a string"},
      {R"({"label": "", "text": "x"})", 1, "one line that is not empty"},
      {R"({"label": "a", "text": "x", "second_text": "y"})", 1, "unknown field 'second_text'"},
      {R"({"label": "a", "text": "x"})", 2, "field 'second_text' is missing"},
      {"\n\n", 1, "no labelled text"},
  };
  for (const auto& broken : cases) {
    const auto texts = ParseLabelledTexts(broken.lines, {.documents = broken.documents}, "data.jsonl");
    EXPECT_EQ(texts.status().code(), absl::StatusCode::kInvalidArgument) << broken.lines;
    EXPECT_THAT(std::string(texts.status().message()), HasSubstr("data.jsonl")) << broken.lines;
    EXPECT_THAT(std::string(texts.status().message()), HasSubstr(broken.message)) << broken.lines;
  }
}

}  // namespace longshort::models::labelled_data_test
