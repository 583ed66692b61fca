#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/tokenizer/tokenizers.h"
#include "tests/base/status_matchers.h"

namespace longshort::models::fairseq_tokenizer_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Tokenizer> Load(Tokenizer::Unit unit, std::string_view text, int64_t vocabulary_size) {
  auto tokenizer = LoadFairseqTokenizer(unit, text, "vocabulary.txt", vocabulary_size);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

std::string LoadError(Tokenizer::Unit unit, std::string_view text, int64_t vocabulary_size = 100) {
  return RefusalOf(LoadFairseqTokenizer(unit, text, "vocabulary.txt", vocabulary_size));
}

std::string DecodeAll(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += tokenizer.Decode(id);
  return text;
}

// All bytes but the newline, in falling order: byte b has id 4 + 255 - b, one less below the newline.
std::string AllBytes() {
  std::string text;
  for (int byte = 255; byte >= 0; --byte) {
    if (byte != '\n') text += std::to_string(byte) + " 1\n";
  }
  return text;
}

TEST(ByteTokenizer, GivesEachByteItsLine) {
  const auto tokenizer = Load(Tokenizer::Unit::kByte, "101 5\n32 4\n0 0\n", 8);
  EXPECT_EQ(tokenizer->unit(), Tokenizer::Unit::kByte);
  EXPECT_EQ(tokenizer->vocabulary_size(), 8);
  EXPECT_THAT(*tokenizer->Encode(std::string_view("e e\n\0", 5)), ElementsAre(4, 5, 4, 2, 6));
  EXPECT_THAT(*tokenizer->Encode(""), IsEmpty());
  EXPECT_EQ(tokenizer->Decode(6), std::string_view("\0", 1));
}

TEST(ByteTokenizer, EveryByteComesBack) {
  const auto tokenizer = Load(Tokenizer::Unit::kByte, AllBytes(), 4 + 255);
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  const auto ids = tokenizer->Encode(text);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(DecodeAll(*tokenizer, *ids), text);
  for (const int32_t id : *ids) EXPECT_TRUE(tokenizer->IsProducible(id));
}

TEST(ByteTokenizer, NamesTheByteOutsideTheVocabularyAndItsOffset) {
  const auto tokenizer = Load(Tokenizer::Unit::kByte, "101 5\n", 5);
  EXPECT_THAT(RefusalOf(tokenizer->Encode("ee\xC3\xA9")), AllOf(HasSubstr("0xC3"), HasSubstr("offset 2")));
}

TEST(ByteTokenizer, RefusesSymbolsThatAreNoByte) {
  for (const std::string symbol : {"256", "-1", "+7", "007", "e", "0x20", "1 2", "99999999999999999999", "<unk>"}) {
    EXPECT_THAT(LoadError(Tokenizer::Unit::kByte, "32 9\n" + symbol + " 1\n"),
                AllOf(HasSubstr("vocabulary.txt: line 2"), HasSubstr("0..255")));
  }
  EXPECT_THAT(LoadError(Tokenizer::Unit::kByte, "10 9\n"), AllOf(HasSubstr("line 1"), HasSubstr("newline")));
}

TEST(CharacterTokenizer, GivesEachCharacterItsLine) {
  const auto tokenizer = Load(Tokenizer::Unit::kCharacter, "_ 9\ne 5\né 2\n", 7);
  EXPECT_EQ(tokenizer->unit(), Tokenizer::Unit::kCharacter);
  EXPECT_THAT(*tokenizer->Encode("e é\ne"), ElementsAre(5, 4, 6, 2, 5));
  EXPECT_EQ(DecodeAll(*tokenizer, {5, 4, 6, 2, 5}), "e é\ne");
}

TEST(CharacterTokenizer, UnderscoreIsTheSpaceAndNotItself) {
  const auto tokenizer = Load(Tokenizer::Unit::kCharacter, "_ 9\ne 5\n", 6);
  EXPECT_EQ(tokenizer->Decode(4), " ");
  EXPECT_THAT(RefusalOf(tokenizer->Encode("e_e")), AllOf(HasSubstr("U+005F '_'"), HasSubstr("offset 1")));
}

TEST(CharacterTokenizer, NamesTheCharacterOutsideTheVocabularyAndItsByteOffset) {
  const auto tokenizer = Load(Tokenizer::Unit::kCharacter, "é 5\n", 5);
  EXPECT_THAT(RefusalOf(tokenizer->Encode("éé€")), AllOf(HasSubstr("U+20AC '€'"), HasSubstr("byte offset 4")));
  EXPECT_THAT(RefusalOf(tokenizer->Encode("é ")), AllOf(HasSubstr("U+0020"), HasSubstr("byte offset 2")));
}

TEST(CharacterTokenizer, NamesInvalidUtf8AndItsByteOffset) {
  const auto tokenizer = Load(Tokenizer::Unit::kCharacter, "é 5\n", 5);
  EXPECT_THAT(RefusalOf(tokenizer->Encode("é\xC3")),
              AllOf(HasSubstr("0xC3"), HasSubstr("byte offset 2"), HasSubstr("UTF-8")));
}

TEST(CharacterTokenizer, RefusesSymbolsThatAreNoCharacter) {
  for (const std::string symbol : {"ab", "101", "<unk>", "\xFF", "e\xCC\x81"}) {
    EXPECT_THAT(LoadError(Tokenizer::Unit::kCharacter, "e 9\n" + symbol + " 1\n"),
                AllOf(HasSubstr("line 2"), HasSubstr("not one UTF-8 character")));
  }
  EXPECT_THAT(LoadError(Tokenizer::Unit::kCharacter, "  9\n"), AllOf(HasSubstr("line 1"), HasSubstr("space")));
}

// <s> <pad> </s> <unk>  e  madeupword0000  (listed by the model, not by the file)
//  0    1     2    3    4        5                 6  7
TEST(FairseqTokenizer, OnlyTextIsProducible) {
  for (const Tokenizer::Unit unit : {Tokenizer::Unit::kByte, Tokenizer::Unit::kCharacter}) {
    const auto tokenizer =
        Load(unit, unit == Tokenizer::Unit::kByte ? "101 5\nmadeupword0000 0\n" : "e 5\nmadeupword0000 0\n", 8);
    for (const int32_t id : {2, 4}) {
      EXPECT_TRUE(tokenizer->IsProducible(id)) << id;
      EXPECT_FALSE(tokenizer->Decode(id).empty()) << id;
    }
    for (const int32_t id : {-1, 0, 1, 3, 5, 6, 7, 8, 1'000'000}) {
      EXPECT_FALSE(tokenizer->IsProducible(id)) << id;
      EXPECT_TRUE(tokenizer->Decode(id).empty()) << id;
    }
    EXPECT_EQ(tokenizer->Decode(2), "\n");
  }
}

TEST(FairseqTokenizer, RefusesAnEmptyVocabulary) {
  const absl::Status refused = LoadFairseqTokenizer(Tokenizer::Unit::kByte, "", "vocabulary.txt", 260).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("vocabulary.txt: there are no symbols"));
}

TEST(FairseqTokenizer, RefusesMoreSymbolsThanTheModelHas) {
  EXPECT_THAT(LoadError(Tokenizer::Unit::kByte, "101 5\n32 4\n", 5),
              AllOf(HasSubstr("vocabulary.txt"), HasSubstr("4 + 2 symbols"), HasSubstr("vocabulary_size, 5")));
}

}  // namespace longshort::models::fairseq_tokenizer_test
