#include "server/handlers/completion_translator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace longshort::server::completion_translator_test {

GenerationPlan Plan(bool describe_tokens, bool return_raw) {
  GenerationPlan plan;
  plan.describe_tokens = describe_tokens;
  plan.return_raw = return_raw;
  return plan;
}

TEST(CompletionTranslator, TextWaitsForWholeCharactersWhereRawBytesDoNot) {
  CompletionTranslator translator(3, Plan(false, true));
  const CompletionDelta first = translator.Delta({.bytes = "a\xE2\x82", .tokens = {}});
  EXPECT_EQ(first.index, 3);
  EXPECT_EQ(first.text, "a");
  EXPECT_EQ(first.raw, "a\xE2\x82");
  EXPECT_EQ(translator.Delta({.bytes = "\xAC", .tokens = {}}).text, "\xE2\x82\xAC");
  EXPECT_EQ(translator.Rest().text, "");
}

TEST(CompletionTranslator, AnIncompleteCharacterAtTheEndIsReplaced) {
  CompletionTranslator translator(0, Plan(false, false));
  EXPECT_EQ(translator.Delta({.bytes = "\xE2\x82", .tokens = {}}).text, "");
  EXPECT_EQ(translator.Rest().text, "\xEF\xBF\xBD");
}

TEST(CompletionTranslator, TokensAreCountedAlwaysAndDescribedIfAskedFor) {
  const core::GenerationDelta delta = {
      .bytes = "x", .tokens = {{.token = 7, .log_probability = -0.5F, .alternatives = {{7, -0.5F}, {2, -1.0F}}}}};
  const CompletionDelta plain = CompletionTranslator(0, Plan(false, false)).Delta(delta);
  EXPECT_EQ(plain.token_count, 1);
  EXPECT_TRUE(plain.tokens.empty());
  const CompletionDelta described = CompletionTranslator(0, Plan(true, false)).Delta(delta);
  EXPECT_EQ(described.token_count, 1);
  ASSERT_EQ(described.tokens.size(), 1U);
  EXPECT_EQ(described.tokens[0].token, 7);
  EXPECT_EQ(described.tokens[0].log_probability, -0.5F);
  ASSERT_EQ(described.tokens[0].alternatives.size(), 2U);
  EXPECT_EQ(described.tokens[0].alternatives[1].token, 2);
}

// 1,300 tokens: 512, 512 and the rest.
TEST(CompletionTranslator, ALongPromptsTokensComeInPiecesAndInOrder) {
  std::vector<core::GeneratedToken> tokens(1300);
  for (int i = 0; i < 1300; ++i) tokens[i].token = i;
  int next = 0;
  for (const CompletionDelta& piece : CompletionTranslator(0, Plan(true, false)).PromptTokens(tokens)) {
    EXPECT_LE(piece.tokens.size(), 512U);
    EXPECT_EQ(piece.token_count, 0);
    for (const core::GeneratedToken& token : piece.tokens) EXPECT_EQ(token.token, next++);
  }
  EXPECT_EQ(next, 1300);
}

// 70,000 two-byte characters, cut at 32 KiB, even inside a character.
TEST(CompletionTranslator, ALongEchoComesInPiecesOfValidText) {
  CompletionTranslator translator(0, Plan(false, false));
  std::string prompt = "x";
  for (int i = 0; i < 70000; ++i) prompt += "\xC3\xA9";
  const std::vector<CompletionDelta> pieces = translator.Echo(prompt);
  EXPECT_EQ(pieces.size(), 5U);
  std::string text;
  for (const CompletionDelta& piece : pieces) {
    EXPECT_LE(piece.text.size(), 32769U);  // a piece may begin with the byte that the previous one held back
    text += piece.text;
  }
  EXPECT_EQ(text, prompt);
}

TEST(CompletionTranslator, TheEchoMayEndInsideACharacterThatTheModelCompletes) {
  CompletionTranslator translator(0, Plan(false, false));
  EXPECT_EQ(translator.Echo("a\xC3")[0].text, "a");
  EXPECT_EQ(translator.Delta({.bytes = "\xA9", .tokens = {}}).text, "\xC3\xA9");
}

}  // namespace longshort::server::completion_translator_test
