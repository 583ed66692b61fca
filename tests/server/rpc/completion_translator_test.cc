#include "server/rpc/completion_translator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/fakes/scripted_engine.h"

namespace longshort {
namespace {

GenerationPlan Plan(bool describe_tokens, bool return_raw) {
  GenerationPlan plan;
  plan.describe_tokens = describe_tokens;
  plan.return_raw = return_raw;
  return plan;
}

TEST(CompletionTranslator, TextWaitsForWholeCharactersWhereRawBytesDoNot) {
  const auto model = ByteModel();
  CompletionTranslator translator(3, *model, Plan(false, true));
  const v1::CompletionDelta first = translator.Delta({.bytes = "a\xE2\x82", .tokens = {}});
  EXPECT_EQ(first.index(), 3);
  EXPECT_EQ(first.text(), "a");
  EXPECT_EQ(first.raw(), "a\xE2\x82");
  EXPECT_EQ(translator.Delta({.bytes = "\xAC", .tokens = {}}).text(), "\xE2\x82\xAC");
  EXPECT_EQ(translator.Rest().text(), "");
}

TEST(CompletionTranslator, WhatStaysCutAtTheEndIsReplaced) {
  const auto model = ByteModel();
  CompletionTranslator translator(0, *model, Plan(false, false));
  EXPECT_EQ(translator.Delta({.bytes = "\xE2\x82", .tokens = {}}).text(), "");
  EXPECT_EQ(translator.Rest().text(), "\xEF\xBF\xBD");
}

TEST(CompletionTranslator, TokensAreCountedAlwaysAndDescribedIfAskedFor) {
  const auto model = ByteModel();
  const int32_t id = model->tokenizer->Encode("x")->front();
  const GenerationDelta delta = {
      .bytes = "x", .tokens = {{.token = id, .log_probability = -0.5F, .alternatives = {{id, -0.5F}, {2, -1.0F}}}}};
  const v1::CompletionDelta plain = CompletionTranslator(0, *model, Plan(false, false)).Delta(delta);
  EXPECT_EQ(plain.token_count(), 1);
  EXPECT_EQ(plain.tokens_size(), 0);
  const v1::CompletionDelta described = CompletionTranslator(0, *model, Plan(true, false)).Delta(delta);
  ASSERT_EQ(described.tokens_size(), 1);
  EXPECT_EQ(described.tokens(0).id(), id);
  EXPECT_EQ(described.tokens(0).raw(), "x");
  EXPECT_EQ(described.tokens(0).log_probability(), -0.5F);
  ASSERT_EQ(described.tokens(0).alternatives_size(), 2);
  EXPECT_EQ(described.tokens(0).alternatives(1).raw(), "\n");
}

// 70,000 two-byte characters, cut at 32 KiB wherever that falls.
TEST(CompletionTranslator, ALongEchoComesInPiecesOfValidText) {
  const auto model = ByteModel();
  CompletionTranslator translator(0, *model, Plan(false, false));
  std::string prompt = "x";
  for (int i = 0; i < 70000; ++i) prompt += "\xC3\xA9";
  const std::vector<v1::CompletionDelta> pieces = translator.Echo(prompt);
  EXPECT_EQ(pieces.size(), 5U);
  std::string text;
  for (const v1::CompletionDelta& piece : pieces) {
    EXPECT_LE(piece.text().size(), 32769U);  // a piece may begin with the byte that the one before held back
    text += piece.text();
  }
  EXPECT_EQ(text, prompt);
}

TEST(CompletionTranslator, TheEchoMayEndInsideACharacterThatTheModelCompletes) {
  const auto model = ByteModel();
  CompletionTranslator translator(0, *model, Plan(false, false));
  EXPECT_EQ(translator.Echo("a\xC3")[0].text(), "a");
  EXPECT_EQ(translator.Delta({.bytes = "\xA9", .tokens = {}}).text(), "\xC3\xA9");
}

}  // namespace
}  // namespace longshort
