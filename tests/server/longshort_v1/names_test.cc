#include "server/longshort_v1/names.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "absl/strings/str_replace.h"
#include "longshort/v1/inference.grpc.pb.h"
#include "longshort/v1/models.grpc.pb.h"
#include "longshort/v1/sessions.grpc.pb.h"
#include "server/access/scopes.h"

namespace longshort {
namespace {

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
  EXPECT_EQ(kImportSessionNames.Of(CallField::kSessionId), "beginning.session_id");
  EXPECT_EQ(kGenerateNames.Of(CallField::kExpectedTokens), "session.expected_tokens");
  EXPECT_EQ(kCloseSessionNames.Of(CallField::kExpectedTokens), "expected_tokens");
}

constexpr const V1Names* kAllNames[] = {
    &kScoreTextNames,    &kScoreTextsNames,   &kClassifyImageNames, &kGenerateNames,     &kGenerateStreamNames,
    &kTokenizeNames,     &kListModelsNames,   &kGetModelNames,      &kLoadModelNames,    &kUnloadModelNames,
    &kListSessionsNames, &kCloseSessionNames, &kExportSessionNames, &kImportSessionNames};

TEST(V1Names, EveryRpcNeedsAScopeThatTheTableKnows) {
  for (const V1Names* names : kAllNames) EXPECT_TRUE(AccessOf(names->rpc()).has_value()) << names->rpc();
}

TEST(V1Names, EveryMethodIsOneOfTheContract) {
  int methods = 0;
  for (const auto* service :
       {v1::Inference::service_full_name(), v1::Models::service_full_name(), v1::Sessions::service_full_name()}) {
    methods += google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service)->method_count();
  }
  EXPECT_EQ(methods, std::size(kAllNames));
  for (const V1Names* names : kAllNames) {
    const std::string method = absl::StrReplaceAll(names->method(), {{"/", "."}});
    EXPECT_NE(google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(method), nullptr) << method;
  }
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
