// The whole table of wrong requests is in tests/integration; here is what each reader makes of right ones, and what
// only the inside can show.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/requests/answers.h"
#include "server/requests/generate_request.h"
#include "server/requests/input_reader.h"
#include "server/requests/sampling_reader.h"
#include "tests/server/fakes/scripted_engine.h"

namespace longshort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr RequestLimits kLimits = {.prompt_tokens = 1000, .generate_tokens = 500};

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

v1::GenerateRequest Prompted(const std::string& text) {
  v1::GenerateRequest request;
  request.mutable_prompt()->set_text(text);
  return request;
}

absl::StatusOr<GenerationPlan> Read(const v1::GenerateRequest& request) {
  return ReadGenerateRequest(request, *ByteModel(), kLimits, RequestContext());
}

TEST(InputReader, ReadsTextBytesAndIds) {
  const auto model = ByteModel();
  v1::Input input;
  input.set_text("A\n");
  const auto from_text = ReadInput(input, "prompt", EncoderOf(*model), 10);
  ASSERT_TRUE(from_text.ok()) << from_text.status();
  input.set_raw("A\n");
  EXPECT_EQ(*ReadInput(input, "prompt", EncoderOf(*model), 10), *from_text);
  for (const int32_t id : *from_text) input.mutable_ids()->add_ids(id);
  EXPECT_EQ(*ReadInput(input, "prompt", EncoderOf(*model), 10), *from_text);
  EXPECT_EQ(from_text->at(1), 2);
  EXPECT_EQ(DecodeTokens(*from_text, *model), "A\n");
}

TEST(InputReader, CountsTokensAgainstTheLimit) {
  v1::Input input;
  input.set_text("12345");
  EXPECT_TRUE(ReadInput(input, "prompt", EncoderOf(*ByteModel()), 5).ok());
  EXPECT_EQ(MessageOf(ReadInput(input, "prompt", EncoderOf(*ByteModel()), 4).status()),
            "number of tokens of prompt is 5; it must be in [1, 4]");
}

TEST(InputReader, AModelWithoutVocabularyTakesIdsOnly) {
  v1::Input input;
  input.set_text("x");
  EXPECT_THAT(MessageOf(ReadInput(input, "prompt", EncoderOf(*IdModel()), 10).status()), HasSubstr("must be ids"));
  input.mutable_ids()->add_ids(259);
  EXPECT_THAT(*ReadInput(input, "prompt", EncoderOf(*IdModel()), 10), ElementsAre(259));
}

TEST(SamplingReader, UnsetFieldsAreTheContractsDefaults) {
  const auto options = ReadSampling(v1::Sampling(), 260, kLimits);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->temperature, 1);
  EXPECT_EQ(options->top_k, 0);
  EXPECT_EQ(options->top_p, 1);
  EXPECT_EQ(options->min_p, 0);
  EXPECT_EQ(options->repetition_penalty, 1);
}

TEST(SamplingReader, ZeroIsAValueWhereAFieldIsOptional) {
  v1::Sampling sampling;
  sampling.set_temperature(0);
  EXPECT_EQ(ReadSampling(sampling, 260, kLimits)->temperature, 0);
  sampling.set_top_p(0);
  EXPECT_EQ(MessageOf(ReadSampling(sampling, 260, kLimits).status()), "sampling.top_p is 0; it must be in (0, 1]");
  sampling.set_top_p(1.0000001);
  EXPECT_THAT(MessageOf(ReadSampling(sampling, 260, kLimits).status()),
              testing::StartsWith("sampling.top_p is 1.0000001"));
}

TEST(SamplingReader, ABiasIsToldAsItWasGiven) {
  v1::Sampling sampling;
  (*sampling.mutable_logit_bias())[7] = 100.1F;
  EXPECT_EQ(MessageOf(ReadSampling(sampling, 260, kLimits).status()),
            "sampling.logit_bias[7] is 100.1; it must be in [-100, 100]");
}

TEST(SamplingReader, NotANumberIsOutsideEveryRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::function<void(v1::Sampling&)>> fields = {
      [&](v1::Sampling& s) { s.set_temperature(nan); },
      [&](v1::Sampling& s) { s.set_top_p(nan); },
      [&](v1::Sampling& s) { s.set_min_p(nan); },
      [&](v1::Sampling& s) { s.set_repetition_penalty(nan); },
      [&](v1::Sampling& s) { s.set_frequency_penalty(nan); },
      [&](v1::Sampling& s) { s.set_presence_penalty(nan); },
      [&](v1::Sampling& s) { (*s.mutable_logit_bias())[1] = std::nanf(""); },
  };
  for (const auto& set : fields) {
    v1::Sampling sampling;
    set(sampling);
    EXPECT_THAT(MessageOf(ReadSampling(sampling, 260, kLimits).status()), HasSubstr("nan"));
  }
}

TEST(SamplingReader, LogitBiasIsSortedAndTopKBeyondTheVocabularyKeepsAll) {
  v1::Sampling sampling;
  for (const int32_t id : {200, 7, 50}) (*sampling.mutable_logit_bias())[id] = static_cast<float>(id) / 4;
  sampling.set_top_k(260);
  const auto options = ReadSampling(sampling, 260, kLimits);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->logit_bias, ElementsAre(Pair(7, 1.75F), Pair(50, 12.5F), Pair(200, 50.0F)));
  EXPECT_EQ(options->top_k, 0);
}

TEST(GenerateRequest, EachCompletionIsARequestThatDrawsItsOwnNumbers) {
  v1::GenerateRequest request = Prompted("abc");
  request.set_completions(3);
  request.mutable_sampling()->set_seed(42);
  const auto plan = Read(request);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->requests.size(), 3U);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan->requests[i].sampling.completion, i);
    EXPECT_EQ(plan->requests[i].sampling.seed, 42U);
    EXPECT_EQ(plan->requests[i].prompt, plan->requests[0].prompt);
    EXPECT_EQ(plan->requests[i].context.cancelled, plan->requests[0].context.cancelled);
  }
}

TEST(GenerateRequest, ASeedIsDrawnAndMaxTokensDefaultsTo256) {
  const auto one = Read(Prompted("abc")), other = Read(Prompted("abc"));
  EXPECT_NE(one->seed, other->seed);
  EXPECT_EQ(one->seed, one->requests[0].sampling.seed);
  EXPECT_EQ(one->requests[0].max_tokens, 256);
}

TEST(GenerateRequest, EchoScoresThePromptOnlyIfLogProbabilitiesAreAskedFor) {
  v1::GenerateRequest request = Prompted("abc");
  request.set_echo(true);
  EXPECT_EQ(Read(request)->echo, "abc");
  EXPECT_FALSE(Read(request)->requests[0].prompt_log_probabilities);
  request.set_token_log_probabilities(true);
  EXPECT_TRUE(Read(request)->requests[0].prompt_log_probabilities);
}

TEST(GenerateRequest, CompletionsShareTheLimitOfPromptTokens) {
  v1::GenerateRequest request = Prompted(std::string(501, 'x'));
  EXPECT_TRUE(Read(request).ok());
  request.set_completions(2);
  EXPECT_EQ(MessageOf(Read(request).status()),
            "number of prompt tokens times completions is 1002; it must be in [0, 1000]");
}

// Where the queue never has room for as many, the limit is what it has room for: coming back later would not help.
TEST(GenerateRequest, ThereAreNoMoreCompletionsThanTheModelsQueueTakes) {
  ServedModel model{.name = "m", .version = 1, .kind = std::move(*ByteModel()), .load_duration = {}};
  std::get<ServedLanguageModel>(model.kind).max_items = 4;
  v1::GenerateRequest request = Prompted("abc");
  request.set_completions(5);
  EXPECT_EQ(MessageOf(ReadGenerateRequest(request, *model.language_model(), kLimits, RequestContext()).status()),
            "completions is 5; it must be in [1, 4]");
  EXPECT_EQ(DescribeModel(model, kLimits).limits().completions(), 4);
}

TEST(GenerateRequest, OneAnswerHoldsSoManyTokens) {
  RequestLimits limits = kLimits;
  limits.answer_tokens = 1000;
  v1::GenerateRequest request = Prompted("abc");
  request.set_max_tokens(500);
  request.set_completions(2);
  EXPECT_TRUE(CheckFitsOneAnswer(*Read(request), limits).ok());
  request.set_completions(3);
  EXPECT_EQ(MessageOf(CheckFitsOneAnswer(*Read(request), limits)),
            "max_tokens times completions (GenerateStream takes more) is 1500; it must be in [1, 1000]");
}

TEST(GenerateRequest, AModelWithoutVocabularyTellsItsIds) {
  v1::GenerateRequest request;
  request.mutable_prompt()->mutable_ids()->add_ids(5);
  const auto plan = ReadGenerateRequest(request, *IdModel(), kLimits, RequestContext());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->describe_tokens);
  request.add_stop("x");
  EXPECT_THAT(MessageOf(ReadGenerateRequest(request, *IdModel(), kLimits, RequestContext()).status()),
              HasSubstr("stop"));
}

}  // namespace
}  // namespace longshort
