#include <string>

#include "clients/cpp/documents.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort {
namespace {

using testing::HasSubstr;

v1::Model ByteClassifier() {
  v1::Model model;
  model.set_tokenizer("bytes_plus_one");
  model.mutable_classifier()->set_max_document_tokens(5);
  return model;
}

DocumentInputs Text(const std::string& bytes) { return *MakeInputs(bytes, std::nullopt, false); }

TEST(DocumentLimits, AClassifiersLongDocumentIsRefusedWithBothNumbers) {
  DocumentInputs inputs = Text("seven b");
  const absl::Status status = FitDocument(ByteClassifier(), false, inputs);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("7 tokens"));
  EXPECT_THAT(status.message(), HasSubstr("at most 5"));
  inputs = Text("five!");
  EXPECT_TRUE(FitDocument(ByteClassifier(), false, inputs).ok());
}

TEST(DocumentLimits, TruncatedDocumentsKeepAByteMoreSoThatTheServerSeesThem) {
  DocumentInputs inputs = Text(std::string(1000, 'a'));
  ASSERT_TRUE(FitDocument(ByteClassifier(), true, inputs).ok());
  EXPECT_EQ(inputs.first.raw().size(), 6);
  inputs = *MakeInputs("1 2 3 4 5 6 7 8", std::nullopt, true);
  ASSERT_TRUE(FitDocument(ByteClassifier(), true, inputs).ok());
  EXPECT_EQ(inputs.first.ids().ids_size(), 6);
}

TEST(DocumentLimits, TheSecondDocumentHasTheSameLimit) {
  DocumentInputs inputs = *MakeInputs("a", "too long", false);
  EXPECT_FALSE(FitDocument(ByteClassifier(), false, inputs).ok());
  ASSERT_TRUE(FitDocument(ByteClassifier(), true, inputs).ok());
  EXPECT_EQ(inputs.second->raw(), "too lo");
}

TEST(DocumentLimits, WordsAreCountedByTheServerOnly) {
  v1::Model model = ByteClassifier();
  model.set_tokenizer("listops_2021");
  DocumentInputs inputs = Text("[MAX 1 2 ]");
  ASSERT_TRUE(FitDocument(model, true, inputs).ok());
  EXPECT_EQ(inputs.first.raw(), "[MAX 1 2 ]");
}

}  // namespace
}  // namespace longshort
