#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/tokenizer/tokenizers.h"
#include "tests/base/status_matchers.h"

namespace longshort::models::tokenizer_vocabulary_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) { return RefusalOf(ParseVocabulary(text, "some/vocabulary.txt")); }

TEST(Vocabulary, ReadsASymbolALine) {
  EXPECT_THAT(*ParseVocabulary("101 900\n32 0\nmadeupword0000 0\n", "f"), ElementsAre("101", "32", "madeupword0000"));
  EXPECT_THAT(*ParseVocabulary("e 1\nt 1", "f"), ElementsAre("e", "t"));  // no newline at the end
  EXPECT_THAT(*ParseVocabulary("", "f"), ElementsAre());
  EXPECT_THAT(*ParseVocabulary("\xef\xbb\xbf"
                               "e 1\r\nt 1\r\n",
                               "f"),
              ElementsAre("e", "t"));  // as an editor of Windows
}

TEST(Vocabulary, NamesTheLineThatIsNoSymbolAndCount) {
  for (const std::string line : {"e", "", " 5", "e ", "e five", "e -5", "e 5 ", "e\t5", "e 5.0"}) {
    EXPECT_THAT(ErrorOf("t 9\n" + line + "\nx 1\n"),
                AllOf(HasSubstr("some/vocabulary.txt: line 2"), HasSubstr("count")));
  }
}

TEST(Vocabulary, NamesBothLinesOfASymbolThatStandsTwice) {
  EXPECT_THAT(ErrorOf("e 3\nt 2\ne 1\n"), AllOf(HasSubstr("line 3"), HasSubstr("'e'"), HasSubstr("line 1")));
}

TEST(Vocabulary, RefusesOverwriting) {
  EXPECT_THAT(ErrorOf("e 3\n</s> 2 #fairseq:overwrite\n"), AllOf(HasSubstr("line 2"), HasSubstr("#fairseq:overwrite")));
}

TEST(Vocabulary, KnowsMadeUpWords) {
  EXPECT_TRUE(IsMadeUpWord("madeupword0000"));
  EXPECT_TRUE(IsMadeUpWord("madeupword12345"));
  EXPECT_FALSE(IsMadeUpWord("madeupword"));
  EXPECT_FALSE(IsMadeUpWord("madeupword000"));
  EXPECT_FALSE(IsMadeUpWord("madeupword000x"));
  EXPECT_FALSE(IsMadeUpWord("xmadeupword0000"));
}

TEST(Vocabulary, QuotesASymbolShortAndSafe) {
  EXPECT_EQ(QuoteSymbol("a\n\xFF"), "'a\\n\\xff'");
  EXPECT_EQ(QuoteSymbol(std::string(100, 'x')), "'" + std::string(60, 'x') + "'");
}

}  // namespace longshort::models::tokenizer_vocabulary_test
