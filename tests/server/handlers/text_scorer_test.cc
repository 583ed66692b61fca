#include "server/handlers/text_scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/status_matchers.h"
#include "tests/server/fakes/plain_names.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"

namespace longshort::server::text_scorer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr RequestLimits kLimits = {.prompt_tokens = 1000, .generate_tokens = 500};

std::shared_ptr<const core::ServedModel> Served(core::ServedModel::Kind kind) {
  auto model = std::make_shared<core::ServedModel>();
  model->name = std::string("m");
  model->kind = std::move(kind);
  return model;
}

absl::StatusOr<std::unique_ptr<TextScorer>> Classifier(const ScoreOptions& options = {}, int64_t documents = 1) {
  return TextScorer::Make(Served(TextClassifier(nullptr, documents)), options, kLimits, kPlainNames);
}

absl::StatusOr<std::unique_ptr<TextScorer>> Speaker(const ScoreOptions& options = {}) {
  return TextScorer::Make(Served(std::move(*ByteModel())), options, kLimits, kPlainNames);
}

// `text` must outlive the input.
TextInput Text(std::string_view text) { return {.kind = TextInput::Kind::kText, .text = text}; }
TextInput Ids(const std::vector<int32_t>& ids) { return {.kind = TextInput::Kind::kIds, .ids = ids}; }

TEST(TextScorer, AClassifierReadsUpToItsLimitAndMoreOnlyIfItMayTruncate) {
  ScoreOptions options;
  const auto strict = Classifier(options);
  EXPECT_EQ((*strict)->Read(Text("12345678"), std::nullopt, 0)->tokens(), 8);
  EXPECT_THAT(RefusalOf((*strict)->Read(Text("123456789"), std::nullopt, 0).status()),
              HasSubstr("number of tokens of text#0 is 9; it must be in [1, 8]"));
  options.truncate = true;
  const auto text = (*Classifier(options))->Read(Text("ABCDEFGHIJ"), std::nullopt, 0);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->documents, ElementsAre(ElementsAre(66, 67, 68, 69, 70, 71, 72, 73)));
  ASSERT_EQ(text->readings.size(), 1U);
  EXPECT_TRUE(text->readings[0].truncated);
}

// The queue counts a text by its tokens, so the text must hold only their memory.
TEST(TextScorer, ATruncatedTextHoldsOnlyTheTokensThatWereRead) {
  ScoreOptions options;
  options.truncate = true;
  const std::string bytes(1'000'000, 'x');
  const std::vector<int32_t> ids(1'000'000, 7);
  const TextInput raw = {.kind = TextInput::Kind::kBytes, .text = bytes};
  for (const TextInput& input : {Text(bytes), raw, Ids(ids)}) {
    auto text = (*Classifier(options))->Read(input, std::nullopt, std::nullopt);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(text->documents[0].size(), 8u);
    EXPECT_EQ(text->documents[0].capacity(), 8u);
  }
}

TEST(TextScorer, IdsAfterTheCutAreCheckedToo) {
  ScoreOptions options;
  options.truncate = true;
  const std::vector<int32_t> ids = {1, 1, 1, 1, 1, 1, 1, 1, 257};
  EXPECT_EQ(RefusalOf((*Classifier(options))->Read(Ids(ids), std::nullopt, std::nullopt).status()),
            "text, id 8 is 257; it must be in [0, 256]");
}

// Their address does not change until they reach the engine.
TEST(TextScorer, IdsAreMovedToTheEngine) {
  auto engine = std::make_unique<ScriptedClassifierEngine>();
  ScriptedClassifierEngine& submitted = *engine;
  const auto classifier = TextScorer::Make(Served(TextClassifier(std::move(engine))), {}, kLimits, kPlainNames);
  auto text = (*classifier)->Read(Text("abc"), std::nullopt, std::nullopt);
  const int32_t* ids = text->documents[0].data();
  ASSERT_TRUE((*classifier)->Submit(*std::move(text), core::RequestContext(), [](absl::StatusOr<ScoredText>) {}).ok());
  const auto items = submitted.TakeItems(1);
  EXPECT_EQ(std::get<models::TokenItem>(std::get<models::ClassifierItem>(items[0].request.item)).documents[0].data(),
            ids);
  EXPECT_EQ(items[0].request.bytes, 12);

  core::ServedLanguageModel speaker = std::move(*ByteModel());
  auto speaking = std::make_unique<ScriptedEngine>();
  ScriptedEngine& scored = *speaking;
  speaker.engine = std::move(speaking);
  const auto scorer = TextScorer::Make(Served(std::move(speaker)), {}, kLimits, kPlainNames);
  text = (*scorer)->Read(Text("abc"), std::nullopt, std::nullopt);
  ids = text->documents[0].data();
  ASSERT_TRUE((*scorer)->Submit(*std::move(text), core::RequestContext(), [](absl::StatusOr<ScoredText>) {}).ok());
  EXPECT_EQ(scored.TakeScorings(1)[0].request.tokens.data(), ids);
}

TEST(TextScorer, PaddingAloneIsRefusedAndInsideATextIsNot) {
  const auto scorer = Classifier();
  std::vector<int32_t> ids = {0};
  EXPECT_THAT(RefusalOf((*scorer)->Read(Ids(ids), std::nullopt, std::nullopt).status()), HasSubstr("padding"));
  ids.push_back(9);
  EXPECT_TRUE((*scorer)->Read(Ids(ids), std::nullopt, std::nullopt).ok());
  EXPECT_THAT(RefusalOf((*scorer)->Read(Text(""), std::nullopt, std::nullopt).status()), HasSubstr("empty"));
}

TEST(TextScorer, AClassifierOfPairsTakesTwoDocumentsAndOthersOne) {
  const TextInput second = Text("b");
  const auto pair = (*Classifier({}, 2))->Read(Text("a"), second, std::nullopt);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_THAT(pair->documents, ElementsAre(ElementsAre(98), ElementsAre(99)));
  EXPECT_EQ(RefusalOf((*Classifier({}, 2))->Read(Text("a"), std::nullopt, std::nullopt).status()),
            "other text is unset; it must be set, because the model takes two documents");
  EXPECT_EQ(RefusalOf((*Classifier())->Read(Text("a"), second, std::nullopt).status()),
            "other text is set; it must be unset, because the model takes one document");
  EXPECT_THAT(RefusalOf((*Speaker())->Read(Text("a"), second, std::nullopt).status()), HasSubstr("language model"));
}

class JoinedPairs : public ::testing::Test {
 protected:
  // A model of ids with padding 1, of 8 tokens.
  absl::StatusOr<TextToScore> Read(const std::vector<int32_t>& first, const std::optional<std::vector<int32_t>>& second,
                                   bool truncate = false) const {
    core::ServedClassifier model = TextClassifier(nullptr, 1);
    model.info.joins_pairs = true;
    model.info.padding_id = 1;
    ScoreOptions options;
    options.truncate = truncate;
    const auto scorer = TextScorer::Make(Served(std::move(model)), options, kLimits, kPlainNames);
    return (*scorer)->Read(Ids(first), second.has_value() ? std::optional(Ids(*second)) : std::nullopt, std::nullopt);
  }
};

TEST_F(JoinedPairs, TheSecondDocumentIsOptional) {
  EXPECT_THAT(Read({0, 5, 2}, std::nullopt)->documents, ElementsAre(ElementsAre(0, 5, 2)));
  EXPECT_THAT(Read({0, 5, 2}, {{0, 6, 6, 6, 2}})->documents,
              ElementsAre(ElementsAre(0, 5, 2), ElementsAre(0, 6, 6, 6, 2)));
}

TEST_F(JoinedPairs, TheLimitIsThatOfBothDocuments) {
  EXPECT_THAT(RefusalOf(Read({0, 5, 5, 2}, {{0, 6, 6, 6, 2}}).status()),
              HasSubstr("number of tokens of text and other text is 9; it must be in [1, 8]"));
  const auto pair = Read({0, 5, 2}, {{0, 6, 7, 8, 9, 2}}, /*truncate=*/true);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_THAT(pair->documents, ElementsAre(ElementsAre(0, 5, 2), ElementsAre(0, 6, 7, 8, 2)));
  EXPECT_FALSE(pair->readings[0].truncated);
  EXPECT_TRUE(pair->readings[1].truncated);
  EXPECT_EQ(pair->readings[1].token_count, 5);
  EXPECT_THAT(RefusalOf(Read({5}, {{0, 6, 6, 6, 6, 6, 6, 2}}, /*truncate=*/true).status()),
              HasSubstr("cannot be truncated to 8 tokens"));
}

TEST_F(JoinedPairs, ATruncatedDocumentKeepsItsLastToken) {
  const auto text = Read({0, 5, 6, 7, 8, 9, 10, 11, 12, 2}, std::nullopt, /*truncate=*/true);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->documents, ElementsAre(ElementsAre(0, 5, 6, 7, 8, 9, 10, 2)));
  EXPECT_TRUE(text->readings[0].truncated);
}

TEST_F(JoinedPairs, PaddingIsTheModelsId) {
  EXPECT_TRUE(Read({0}, std::nullopt).ok());
  EXPECT_THAT(RefusalOf(Read({1, 1}, std::nullopt).status()), HasSubstr("padding (id 1) alone"));
}

TEST_F(JoinedPairs, WhatTruncationKeepsIsNotPaddingAlone) {
  EXPECT_THAT(RefusalOf(Read({1, 1, 1, 1, 1, 1, 1, 1, 5, 1}, std::nullopt, /*truncate=*/true).status()),
              HasSubstr("padding (id 1) alone"));
  EXPECT_THAT(RefusalOf(Read({0, 5, 2}, {{1, 1, 1, 1, 1, 1, 1, 1, 5, 1}}, /*truncate=*/true).status()),
              HasSubstr("padding (id 1) alone"));
}

TEST(TextScorer, AModelWithoutClassesDoesNotClassify) {
  core::ServedClassifier model = TextClassifier(nullptr, 1);
  model.info.classes = 0;
  EXPECT_EQ(TextScorer::Make(Served(std::move(model)), {}, kLimits, kPlainNames).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(TextScorer, OptionsOfTheOtherKindOfModelAreRefusedByName) {
  ScoreOptions options;
  options.truncate = true;
  EXPECT_EQ(RefusalOf(Speaker(options).status()), "cut is 1; it must be unset: the model is a language model");
  options = {};
  options.classes.top_k = 1;
  EXPECT_THAT(RefusalOf(Speaker(options).status()), HasSubstr("classes is 1"));
  options = {};
  options.token_log_probabilities = true;
  EXPECT_TRUE(Speaker(options).ok());
  EXPECT_THAT(RefusalOf(Classifier(options).status()), HasSubstr("details is 1"));
}

TEST(TextScorer, AlternativesNeedLogProbabilities) {
  ScoreOptions options;
  options.top_alternatives = 5;
  EXPECT_TRUE((*Speaker(options))->CheckAnswerFits(1, 100000, kGrpcAnswerBytes).ok());
  options.token_log_probabilities = true;
  EXPECT_FALSE((*Speaker(options))->CheckAnswerFits(1, 100000, kGrpcAnswerBytes).ok());
}

TEST(TextScorer, AClassifierOfImagesScoresNoTexts) {
  EXPECT_EQ(TextScorer::Make(Served(ImageClassifier(nullptr)), {}, kLimits, kPlainNames).status(),
            absl::FailedPreconditionError("texts cannot be scored: model m is a classifier of images"));
}

}  // namespace longshort::server::text_scorer_test
