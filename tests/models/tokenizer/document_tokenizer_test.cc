#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models::document_tokenizer_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// In ASCII order; unknown words have id 15 and 16.
constexpr char kWords2020[] = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nMAX\nMED\nMIN\nSM\n";
constexpr char kWords2021[] = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nX\n[MAX\n[MED\n[MIN\n[SM\n";

std::unique_ptr<TextEncoder> Load(ListOpsRules rules, std::string_view text, int64_t vocabulary_size = 512) {
  auto tokenizer = LoadListOpsTokenizer(rules, text, "vocabulary.txt", vocabulary_size);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::string LoadError(std::string_view text, int64_t vocabulary_size = 512) {
  const auto refused = LoadListOpsTokenizer(ListOpsRules::k2020, text, "vocabulary.txt", vocabulary_size);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(refused.status().message());
}

TEST(BytesPlusOneTokenizer, GivesEveryByteTheIdAfterIt) {
  const auto tokenizer = MakeBytesPlusOneTokenizer();
  EXPECT_THAT(*tokenizer->Encode(std::string_view("a\0\xff\n", 4)), ElementsAre(98, 1, 256, 11));
  EXPECT_THAT(*tokenizer->Encode("caf\xc3\xa9"), ElementsAre(100, 98, 103, 196, 170));
  EXPECT_THAT(*tokenizer->Encode(""), IsEmpty());
}

TEST(BytesPlusOneTokenizer, HoldsNoMoreThanTheBeginningThatWasAskedFor) {
  const auto beginning = MakeBytesPlusOneTokenizer()->EncodeBeginning(std::string(1'000'000, 'a'), 3);
  ASSERT_TRUE(beginning.ok()) << beginning.status();
  EXPECT_THAT(beginning->ids, ElementsAre(98, 98, 98));
  EXPECT_EQ(beginning->ids.capacity(), 3u);
  EXPECT_EQ(beginning->tokens, 1'000'000);
}

TEST(ListOpsTokenizer, TheFileMayBeginAndEndItsLinesAsEditorsOfWindowsDo) {
  const auto tokenizer = Load(ListOpsRules::k2020,
                              "\xef\xbb\xbf"
                              "MAX\r\n1\r\n");
  EXPECT_THAT(*tokenizer->Encode("[MAX 1 ]"), ElementsAre(1, 2));
}

TEST(ListOpsTokenizer, HoldsNoMoreThanTheBeginningThatWasAskedFor) {
  const auto beginning = Load(ListOpsRules::k2020, kWords2020)->EncodeBeginning("[MAX 1 2 3 4 5 6 7]", 5);
  ASSERT_TRUE(beginning.ok()) << beginning.status();
  EXPECT_THAT(beginning->ids, ElementsAre(11, 2, 3, 4, 5));
  EXPECT_EQ(beginning->ids.capacity(), 5u);
  EXPECT_EQ(beginning->tokens, 8);
}

TEST(ListOpsTokenizer, Of2020LosesEveryBracket) {
  const auto tokenizer = Load(ListOpsRules::k2020, kWords2020);
  EXPECT_THAT(*tokenizer->Encode("( ( ( ( [MAX 4 ) 3 ) ( ( ( [MIN 2 ) 9 ) ] ) ) ] )"),
              ElementsAre(11, 5, 4, 13, 3, 10));
  EXPECT_THAT(*tokenizer->Encode("[SM 0 8]"), ElementsAre(14, 1, 9));
  EXPECT_THAT(*tokenizer->Encode("( ] ) ..."), IsEmpty());
}

TEST(ListOpsTokenizer, Of2021KeepsClosingBracketsAsX) {
  const auto tokenizer = Load(ListOpsRules::k2021, kWords2021);
  EXPECT_THAT(*tokenizer->Encode("( ( ( ( [MAX 4 ) 3 ) ( ( ( [MIN 2 ) 9 ) ] ) ) ] )"),
              ElementsAre(12, 5, 4, 14, 3, 10, 11, 11));
  EXPECT_THAT(*tokenizer->Encode("\t[SM\n(0) 8 ]\r\n"), ElementsAre(15, 1, 9, 11));
}

TEST(ListOpsTokenizer, WordsOutsideTheVocabularyShareTheIdAfterTheLast) {
  EXPECT_THAT(*Load(ListOpsRules::k2020, kWords2020)->Encode("[FIRST 7 caf\xc3\xa9 5]"), ElementsAre(15, 8, 15, 6));
  EXPECT_THAT(*Load(ListOpsRules::k2021, kWords2021)->Encode("[FIRST 7 88 ]"), ElementsAre(16, 8, 16, 11));
  EXPECT_THAT(*Load(ListOpsRules::k2021, kWords2021)->Encode("4]"), ElementsAre(16));
}

TEST(ListOpsTokenizer, TheVocabularysLinesDecideTheIds) {
  EXPECT_THAT(*Load(ListOpsRules::k2020, "SM\n7\n0")->Encode("0 7 SM MAX"), ElementsAre(3, 2, 1, 4));
}

TEST(ListOpsTokenizer, NamesTheLineThatIsNoSymbol) {
  EXPECT_THAT(LoadError("0\n\n1\n"), AllOf(HasSubstr("vocabulary.txt"), HasSubstr("line 2")));
  EXPECT_THAT(LoadError("0\n1 2\n"), AllOf(HasSubstr("line 2"), HasSubstr("'1 2'")));
  EXPECT_THAT(LoadError("0\n1\n0\n"), AllOf(HasSubstr("line 3"), HasSubstr("already on line 1")));
}

TEST(ListOpsTokenizer, SymbolsPaddingAndUnknownWordsMustFitTheModel) {
  EXPECT_THAT(LoadError("0\n1\n2\n", 4), AllOf(HasSubstr("3 symbols"), HasSubstr("4 ids")));
  EXPECT_THAT(LoadError(""), HasSubstr("0 symbols"));
  EXPECT_THAT(*Load(ListOpsRules::k2020, "0\n1\n2\n", 5)->Encode("2 9"), ElementsAre(3, 4));
}

}  // namespace longshort::models::document_tokenizer_test
