#include <string>

#include "clients/cpp/documents.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::client::document_limits_test {

using testing::ElementsAre;
using testing::HasSubstr;

v1::Model ByteClassifier() {
  v1::Model model;
  model.set_tokenizer("bytes_plus_one");
  model.mutable_classifier()->set_max_document_tokens(5);
  return model;
}

v1::ScoreTextsRequest Text(const std::string& bytes) { return *MakeItem(bytes, std::nullopt, false); }

TEST(DocumentLimits, AClassifiersLongDocumentIsRefusedWithBothNumbers) {
  v1::ScoreTextsRequest item = Text("seven b");
  const absl::Status status = FitDocument(ByteClassifier(), false, item);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("7 tokens"));
  EXPECT_THAT(status.message(), HasSubstr("at most 5"));
  item = Text("five!");
  EXPECT_TRUE(FitDocument(ByteClassifier(), false, item).ok());
}

TEST(DocumentLimits, TruncatedDocumentsKeepATokenMoreSoThatTheServerSeesThem) {
  v1::ScoreTextsRequest item = Text(std::string(1000, 'a'));
  ASSERT_TRUE(FitDocument(ByteClassifier(), true, item).ok());
  EXPECT_EQ(item.input().raw().size(), 6);
  item = *MakeItem("1 2 3 4 5 6 7 8", std::nullopt, true);
  ASSERT_TRUE(FitDocument(ByteClassifier(), true, item).ok());
  EXPECT_THAT(item.input().ids().ids(), ElementsAre(1, 2, 3, 4, 5, 8));
}

TEST(DocumentLimits, TheSecondDocumentHasTheSameLimit) {
  v1::ScoreTextsRequest item = *MakeItem("a", "too long", false);
  EXPECT_FALSE(FitDocument(ByteClassifier(), false, item).ok());
  ASSERT_TRUE(FitDocument(ByteClassifier(), true, item).ok());
  EXPECT_EQ(item.second_input().raw(), "too lo");
}

TEST(DocumentLimits, WordsAreCountedByTheServerOnly) {
  v1::Model model = ByteClassifier();
  model.set_tokenizer("listops_2021");
  v1::ScoreTextsRequest item = Text("[MAX 1 2 ]");
  ASSERT_TRUE(FitDocument(model, true, item).ok());
  EXPECT_EQ(item.input().raw(), "[MAX 1 2 ]");
}

}  // namespace longshort::client::document_limits_test
