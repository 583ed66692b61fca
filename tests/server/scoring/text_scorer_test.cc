#include "server/scoring/text_scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"

namespace longshort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr RequestLimits kLimits = {.prompt_tokens = 1000, .generate_tokens = 500};

std::shared_ptr<const ServedModel> Served(ServedModel::Kind kind) {
  auto model = std::make_shared<ServedModel>();
  model->name = std::string("m");
  model->kind = std::move(kind);
  return model;
}

absl::StatusOr<std::unique_ptr<TextScorer>> Classifier(const v1::ScoreTextsOptions& options = {},
                                                       int64_t documents = 1) {
  return TextScorer::Make(Served(TextClassifier(nullptr, documents)), options, kLimits);
}

absl::StatusOr<std::unique_ptr<TextScorer>> Speaker(const v1::ScoreTextsOptions& options = {}) {
  return TextScorer::Make(Served(std::move(*ByteModel())), options, kLimits);
}

v1::Input Text(const std::string& text) {
  v1::Input input;
  input.set_text(text);
  return input;
}

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(TextScorer, AClassifierReadsUpToItsLimitAndMoreOnlyIfItMayTruncate) {
  v1::ScoreTextsOptions options;
  const auto strict = Classifier(options);
  EXPECT_EQ((*strict)->Read(Text("12345678"), "inputs[0]", nullptr, "second_inputs[0]")->tokens(), 8);
  EXPECT_THAT(MessageOf((*strict)->Read(Text("123456789"), "inputs[0]", nullptr, "second_inputs[0]").status()),
              HasSubstr("number of tokens of inputs[0] is 9; it must be in [1, 8]"));
  options.set_truncate(true);
  const auto text = (*Classifier(options))->Read(Text("ABCDEFGHIJ"), "inputs[0]", nullptr, "second_inputs[0]");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->documents, ElementsAre(ElementsAre(66, 67, 68, 69, 70, 71, 72, 73)));
  EXPECT_THAT(text->truncated, ElementsAre(true));
}

// What waits is counted by its tokens: no memory beyond them may wait with it.
TEST(TextScorer, ATruncatedTextHoldsNoMoreThanWasRead) {
  v1::ScoreTextsOptions options;
  options.set_truncate(true);
  v1::Input raw, ids;
  raw.set_raw(std::string(1'000'000, 'x'));
  for (int i = 0; i < 1'000'000; ++i) ids.mutable_ids()->add_ids(7);
  for (const v1::Input& input : {Text(std::string(1'000'000, 'x')), raw, ids}) {
    auto text = (*Classifier(options))->Read(input, "input", nullptr, "second_input");
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(text->documents[0].size(), 8u);
    EXPECT_EQ(text->documents[0].capacity(), 8u);
  }
}

TEST(TextScorer, IdsBehindTheCutAreCheckedToo) {
  v1::ScoreTextsOptions options;
  options.set_truncate(true);
  v1::Input input;
  for (int i = 0; i < 9; ++i) input.mutable_ids()->add_ids(i < 8 ? 1 : 257);
  EXPECT_EQ(MessageOf((*Classifier(options))->Read(input, "input", nullptr, "second_input").status()),
            "input.ids.ids[8] is 257; it must be in [0, 256]");
}

// Their address stays the same on the way to the engine.
TEST(TextScorer, IdsAreMovedToTheEngine) {
  auto engine = std::make_unique<ScriptedClassifierEngine>();
  ScriptedClassifierEngine& submitted = *engine;
  const auto classifier = TextScorer::Make(Served(TextClassifier(std::move(engine))), {}, kLimits);
  auto text = (*classifier)->Read(Text("abc"), "input", nullptr, "second_input");
  const int32_t* ids = text->documents[0].data();
  ASSERT_TRUE((*classifier)->Submit(*std::move(text), RequestContext(), [](absl::StatusOr<ScoredText>) {}).ok());
  const auto items = submitted.TakeItems(1);
  EXPECT_EQ(std::get<TokenItem>(std::get<ClassifierItem>(items[0].request.item)).documents[0].data(), ids);
  EXPECT_EQ(items[0].request.bytes, 12);

  ServedLanguageModel speaker = std::move(*ByteModel());
  auto speaking = std::make_unique<ScriptedEngine>();
  ScriptedEngine& scored = *speaking;
  speaker.engine = std::move(speaking);
  const auto scorer = TextScorer::Make(Served(std::move(speaker)), {}, kLimits);
  text = (*scorer)->Read(Text("abc"), "input", nullptr, "second_input");
  ids = text->documents[0].data();
  ASSERT_TRUE((*scorer)->Submit(*std::move(text), RequestContext(), [](absl::StatusOr<ScoredText>) {}).ok());
  EXPECT_EQ(scored.TakeScorings(1)[0].request.tokens.data(), ids);
}

TEST(TextScorer, PaddingAloneIsRefusedAndInsideATextIsNot) {
  const auto scorer = Classifier();
  v1::Input input;
  input.mutable_ids()->add_ids(0);
  EXPECT_THAT(MessageOf((*scorer)->Read(input, "input", nullptr, "second_input").status()), HasSubstr("padding"));
  input.mutable_ids()->add_ids(9);
  EXPECT_TRUE((*scorer)->Read(input, "input", nullptr, "second_input").ok());
  EXPECT_THAT(MessageOf((*scorer)->Read(Text(""), "input", nullptr, "second_input").status()), HasSubstr("empty"));
}

TEST(TextScorer, AClassifierOfPairsTakesTwoDocumentsAndOthersOne) {
  const v1::Input second = Text("b");
  const auto pair = (*Classifier({}, 2))->Read(Text("a"), "input", &second, "second_input");
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_THAT(pair->documents, ElementsAre(ElementsAre(98), ElementsAre(99)));
  EXPECT_EQ(MessageOf((*Classifier({}, 2))->Read(Text("a"), "input", nullptr, "second_input").status()),
            "second_input is unset; it must be set, because the model takes two documents");
  EXPECT_EQ(MessageOf((*Classifier())->Read(Text("a"), "input", &second, "second_input").status()),
            "second_input is set; it must be unset, because the model takes one document");
  EXPECT_THAT(MessageOf((*Speaker())->Read(Text("a"), "input", &second, "second_input").status()),
              HasSubstr("language model"));
}

TEST(TextScorer, OptionsOfTheOtherKindOfModelAreRefusedByName) {
  v1::ScoreTextsOptions options;
  options.set_truncate(true);
  EXPECT_EQ(MessageOf(Speaker(options).status()), "truncate is 1; it must be unset: the model is a language model");
  options.Clear();
  options.set_top_k(1);
  EXPECT_THAT(MessageOf(Speaker(options).status()), HasSubstr("top_k"));
  options.Clear();
  options.set_token_log_probabilities(true);
  EXPECT_TRUE(Speaker(options).ok());
  EXPECT_THAT(MessageOf(Classifier(options).status()), HasSubstr("token_log_probabilities"));
}

TEST(TextScorer, AlternativesNeedLogProbabilities) {
  v1::ScoreTextsOptions options;
  options.set_top_alternatives(5);
  EXPECT_TRUE((*Speaker(options))->CheckAnswerFits(1, 100000).ok());
  options.set_token_log_probabilities(true);
  EXPECT_FALSE((*Speaker(options))->CheckAnswerFits(1, 100000).ok());
}

TEST(TextScorer, AClassifierOfImagesScoresNoTexts) {
  EXPECT_EQ(TextScorer::Make(Served(ImageClassifier(nullptr)), {}, kLimits).status(),
            absl::FailedPreconditionError("texts cannot be scored: model m is a classifier of images"));
}

}  // namespace
}  // namespace longshort
