#include "server/longshort_v1/names.h"

#include <gtest/gtest.h>

#include <string>

namespace longshort {
namespace {

const V1Names kScoreTextNames("longshort.v1.Inference/ScoreText", Scope::kInfer, "session.id");
const V1Names kScoreTextsNames("longshort.v1.Inference/ScoreTexts", Scope::kInfer);
const V1Names kClassifyImageNames("longshort.v1.Inference/ClassifyImage", Scope::kInfer);
const V1Names kGenerateNames("longshort.v1.Inference/Generate", Scope::kInfer, "session.id");
const V1Names kCloseSessionNames("longshort.v1.Sessions/CloseSession", Scope::kSessions);

TEST(V1Names, ATextIsOneOfSeveralOrTheOnlyOne) {
  EXPECT_EQ(kScoreTextNames.Of(CallField::kTexts), "inputs");
  EXPECT_EQ(kScoreTextNames.Of(CallField::kText, 3), "inputs[3]");
  EXPECT_EQ(kScoreTextsNames.Of(CallField::kText), "input");
  EXPECT_EQ(kScoreTextNames.Of(CallField::kSecondText, 0), "second_inputs[0]");
  EXPECT_EQ(kScoreTextsNames.Of(CallField::kSecondText), "second_input");
}

TEST(V1Names, WhatATextConsistsOfIsNamedBehindIt) {
  FieldPath path = {.field = CallField::kText, .index = 2, .part = TextPart::kText};
  EXPECT_EQ(kScoreTextNames.Of(path), "inputs[2].text");
  path = {.field = CallField::kPrompt, .part = TextPart::kBytes};
  EXPECT_EQ(kGenerateNames.Of(path), "prompt.raw");
  path = {.field = CallField::kText, .part = TextPart::kIds, .id_index = 5};
  EXPECT_EQ(kScoreTextsNames.Of(path), "input.ids.ids[5]");
}

TEST(V1Names, ASessionsIdStandsWhereItsMessageHasIt) {
  EXPECT_EQ(kGenerateNames.Of(CallField::kSessionId), "session.id");
  EXPECT_EQ(kScoreTextNames.Of(CallField::kSessionId), "session.id");
  EXPECT_EQ(kCloseSessionNames.Of(CallField::kSessionId), "session_id");
  EXPECT_EQ(kGenerateNames.Of(CallField::kExpectedTokens), "session.expected_tokens");
  EXPECT_EQ(kCloseSessionNames.Of(CallField::kExpectedTokens), "expected_tokens");
}

TEST(V1Names, OtherFieldsAreNamedByTheirPath) {
  EXPECT_EQ(kClassifyImageNames.Of(CallField::kImage, 2), "images[2]");
  EXPECT_EQ(kGenerateNames.Of(CallField::kTopP), "sampling.top_p");
  EXPECT_EQ(kGenerateNames.Of(CallField::kLogitBias, 7), "sampling.logit_bias[7]");
  EXPECT_EQ(kGenerateNames.Of(CallField::kStop, 1), "stop[1]");
  EXPECT_EQ(kGenerateNames.KindsOf(CallField::kPrompt), "text, raw or ids");
  EXPECT_EQ(kClassifyImageNames.KindsOf(CallField::kImage), "encoded, or a tensor with values");
}

}  // namespace
}  // namespace longshort
