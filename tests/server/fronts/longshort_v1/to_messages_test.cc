#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule/refusal.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/handlers/item_answer.h"
#include "tests/server/fakes/scripted_classifier.h"
#include "tests/server/fakes/scripted_engine.h"

namespace longshort::server::to_messages_test {

using ::testing::ElementsAre;

// The message limit of gRPC clients by default.
constexpr size_t kMaxAnswerBytes = size_t{4} << 20;

// Every token is a character of four bytes.
class LongCharacters final : public models::Tokenizer {
 public:
  Unit unit() const override { return Unit::kCharacter; }
  int64_t vocabulary_size() const override { return 1 << 22; }
  bool IsProducible(int32_t) const override { return true; }
  absl::StatusOr<models::DocumentBeginning> EncodeBeginning(std::string_view, int64_t) const override {
    return absl::UnimplementedError("not needed");
  }
  absl::StatusOr<std::vector<models::TokenSpan>> Spans(std::string_view) const override {
    return absl::UnimplementedError("not needed");
  }
  std::string_view Decode(int32_t) const override { return "\xF0\x9F\x98\x80"; }
};

// The longest possible answer: an id beyond 2^21 takes 4 bytes, a character up to 4, as a token and in the text.
TEST(ToMessages, AnAnswerWithAsManyDescribedTokensAsAllowedIsTakenByEveryClient) {
  GenerateResult result;
  result.tokenizer = std::make_shared<LongCharacters>();
  Completion& completion = result.completions.emplace_back();
  for (int64_t i = 0; i < RequestLimits().described_tokens; ++i) {
    completion.tokens.push_back({.token = (1 << 22) - 1, .log_probability = -1, .alternatives = {}});
    completion.text += result.tokenizer->Decode(0);
    completion.raw += result.tokenizer->Decode(0);
  }
  const v1::GenerateResponse message = ToMessage(std::move(result));
  EXPECT_EQ(message.completions(0).tokens_size(), RequestLimits().described_tokens);
  EXPECT_LT(message.ByteSizeLong(), kMaxAnswerBytes);
}

TEST(ToMessages, TokensAreNamedByTheirBytesAndSoAreAlternatives) {
  const auto model = ByteModel();
  const int32_t id = model->tokenizer->Encode("x")->front();
  CompletionDelta delta;
  delta.index = 3;
  delta.token_count = 1;
  delta.tokens = {{.token = id, .log_probability = -0.5F, .alternatives = {{id, -0.5F}, {2, -1.0F}}}};
  const v1::GenerateStreamResponse named = ToMessage(delta, model->tokenizer.get());
  EXPECT_EQ(named.delta().index(), 3);
  EXPECT_EQ(named.delta().token_count(), 1);
  ASSERT_EQ(named.delta().tokens_size(), 1);
  const v1::TokenLogProbability& token = named.delta().tokens(0);
  EXPECT_EQ(token.id(), id);
  EXPECT_EQ(token.raw(), "x");
  EXPECT_EQ(token.log_probability(), -0.5F);
  ASSERT_EQ(token.alternatives_size(), 2);
  EXPECT_EQ(token.alternatives(1).id(), 2);
  EXPECT_EQ(token.alternatives(1).raw(), "\n");
  EXPECT_EQ(token.alternatives(1).log_probability(), -1.0F);
  EXPECT_EQ(ToMessage(delta, nullptr).delta().tokens(0).raw(), "");
}

TEST(ToMessages, EachEventIsTheMessageOfItsKind) {
  const v1::GenerateStreamResponse start =
      ToMessage(StreamStart{.model = {.name = "m", .version = 2}, .seed = 7, .tokenizer = nullptr}, nullptr);
  EXPECT_EQ(start.start().model().name(), "m");
  EXPECT_EQ(start.start().model().version(), 2);
  EXPECT_EQ(start.start().seed(), 7U);
  CompletionEnd end;
  end.index = 1;
  end.finish_reason = core::FinishReason::kStopString;
  end.stop = "stop";
  end.timings.decode = absl::Seconds(3);
  const v1::GenerateStreamResponse ended = ToMessage(end, nullptr);
  EXPECT_EQ(ended.end().index(), 1);
  EXPECT_EQ(ended.end().finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(ended.end().stop(), "stop");
  EXPECT_EQ(ended.end().timings().decode_seconds(), 3);
  const StreamSummary sum{.usage = {.prompt_tokens = 1, .generated_tokens = 2, .cached_tokens = 3}};
  const v1::GenerateStreamResponse summary = ToMessage(sum, nullptr);
  EXPECT_EQ(summary.summary().usage().prompt_tokens(), 1);
  EXPECT_EQ(summary.summary().usage().generated_tokens(), 2);
  EXPECT_EQ(summary.summary().usage().cached_tokens(), 3);
  EXPECT_FALSE(summary.summary().has_session_tokens());
  EXPECT_TRUE(ToMessage(KeepAlive(), nullptr).has_keep_alive());
}

TEST(ToMessages, ScoresAndClassificationsStandInListsOfTheirOwn) {
  auto served = std::make_shared<core::ServedModel>();
  served->kind = std::move(*ByteModel());
  ScoreResult result;
  result.served = served;
  result.usage.prompt_tokens = 5;
  result.texts.push_back(
      {.result = TextScore{.log_likelihood = -4, .token_count = 3, .scored_token_count = 2, .bits_per_byte = 1.5}});
  TextClassification classified;
  classified.classification.classes = {{.index = 1, .label = "dog", .probability = 0.75F}};
  classified.classification.logits = {1, 2};
  classified.documents = {{.token_count = 8, .truncated = true}};
  result.texts.push_back({.result = classified});
  const v1::ScoreTextResponse message = ToMessage(std::move(result));
  ASSERT_EQ(message.scores_size(), 1);
  EXPECT_EQ(message.scores(0).log_likelihood(), -4);
  EXPECT_EQ(message.scores(0).token_count(), 3);
  EXPECT_EQ(message.scores(0).scored_token_count(), 2);
  EXPECT_EQ(message.scores(0).bits_per_byte(), 1.5);
  EXPECT_FALSE(message.scores(0).has_bits_per_character());
  EXPECT_FALSE(message.scores(0).has_session_tokens());
  ASSERT_EQ(message.classifications_size(), 1);
  EXPECT_EQ(message.classifications(0).classification().classes(0).label(), "dog");
  EXPECT_THAT(message.classifications(0).classification().logits(), ElementsAre(1, 2));
  EXPECT_TRUE(message.classifications(0).documents(0).truncated());
  EXPECT_EQ(message.usage().prompt_tokens(), 5);
}

TEST(ToMessages, AnItemsErrorHasItsRetryDelay) {
  absl::Status full = absl::ResourceExhaustedError("full");
  EXPECT_FALSE(ToItemError(full).has_retry_after_seconds());
  core::SetRefusal(full, {.retry_after = absl::Milliseconds(2500), .queue_depth = 17});
  const v1::ItemError error = ToItemError(full);
  EXPECT_EQ(error.code(), 8);
  EXPECT_EQ(error.message(), "full");
  EXPECT_EQ(error.retry_after_seconds(), 2.5);
}

TEST(ToMessages, AModelIsDescribedByItsKind) {
  core::ServedModel speaker{.name = "s", .version = 2, .kind = std::move(*ByteModel()), .load_duration = {}};
  const RequestLimits limits = {.prompt_tokens = 1000, .generate_tokens = 500};
  const v1::Model of_language = ToMessage(speaker, limits);
  EXPECT_EQ(of_language.name(), "s");
  EXPECT_EQ(of_language.version(), 2);
  EXPECT_EQ(of_language.architecture(), "language_model");
  EXPECT_EQ(of_language.tokenizer(), "fairseq_bytes");
  EXPECT_EQ(of_language.vocabulary_size(), 260);
  EXPECT_EQ(of_language.limits().prompt_tokens(), 1000);
  EXPECT_EQ(of_language.limits().max_tokens(), 500);
  EXPECT_EQ(of_language.limits().completions(), 16);
  EXPECT_EQ(of_language.limits().images(), 0);
  core::ServedModel images{.name = "i", .version = 1, .kind = ImageClassifier(nullptr), .load_duration = {}};
  const v1::Model of_images = ToMessage(images, limits);
  EXPECT_EQ(of_images.architecture(), "vil");
  EXPECT_EQ(of_images.classifier().input(), v1::CLASSIFIER_INPUT_IMAGE);
  EXPECT_THAT(of_images.classifier().labels(), ElementsAre("cat", "dog", "owl"));
  EXPECT_EQ(of_images.classifier().channels(), 3);
  EXPECT_EQ(of_images.limits().images(), 64);
  EXPECT_EQ(of_images.limits().inputs(), 0);
  EXPECT_EQ(of_images.tokenizer(), "");
}

// The window of a stream and the limit of an answer use this bound.
TEST(ToMessages, AClassificationIsNeverLongerThanItsBound) {
  models::ClassifierInfo info;
  info.classes = 70000;
  info.labels.assign(info.classes, std::string(200, 'x'));
  const ClassOptions answer{.top_k = info.classes, .all_logits = true};
  core::ItemResult scores{.row = std::vector<float>(info.classes, -0.5F), .timings = {}};
  scores.timings.run = absl::Seconds(1);
  EXPECT_LE(static_cast<int64_t>(ToMessage(AnswerOf(scores, answer, info)).ByteSizeLong()), MaxBytes(answer, info));
}

}  // namespace longshort::server::to_messages_test
