// Plans of valid requests, and checks that need the plan's internals. tests/integration has the table of all invalid
// requests.

#include "server/handlers/generation_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/calls/request_limits.h"
#include "tests/base/status_matchers.h"
#include "tests/server/fakes/plain_names.h"
#include "tests/server/fakes/scripted_engine.h"

namespace longshort::server::generation_plan_test {

using ::testing::HasSubstr;

constexpr RequestLimits kLimits = {.prompt_tokens = 1000, .generate_tokens = 500};

// `text` must outlive the call.
GenerateCall Prompted(std::string_view text) {
  return {.prompts = {TextInput{.kind = TextInput::Kind::kText, .text = text}}};
}

absl::StatusOr<GenerationPlan> Plan(const GenerateCall& call) {
  return PlanGeneration(call, *ByteModel(), kLimits, kPlainNames, core::RequestContext());
}

TEST(GenerationPlan, EachCompletionIsARequestThatDrawsItsOwnNumbers) {
  GenerateCall call = Prompted("abc");
  call.completions = 3;
  call.seed = 42;
  const auto plan = Plan(call);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->requests.size(), 3U);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan->requests[i].sampling.completion, i);
    EXPECT_EQ(plan->requests[i].sampling.seed, 42U);
    EXPECT_EQ(plan->requests[i].prompt, plan->requests[0].prompt);
    EXPECT_EQ(plan->requests[i].context.cancelled, plan->requests[0].context.cancelled);
  }
}

TEST(GenerationPlan, ASeedIsDrawnAndMaxTokensDefaultsTo256) {
  const auto one = Plan(Prompted("abc")), other = Plan(Prompted("abc"));
  EXPECT_NE(one->seed, other->seed);
  EXPECT_EQ(one->seed, one->requests[0].sampling.seed);
  EXPECT_EQ(one->requests[0].max_tokens, 256);
}

TEST(GenerationPlan, EchoScoresThePromptOnlyIfLogProbabilitiesAreAskedFor) {
  GenerateCall call = Prompted("abc");
  call.echo = true;
  EXPECT_THAT(Plan(call)->echoes, ::testing::ElementsAre("abc"));
  EXPECT_FALSE(Plan(call)->requests[0].prompt_log_probabilities);
  call.token_log_probabilities = true;
  EXPECT_TRUE(Plan(call)->requests[0].prompt_log_probabilities);
}

TEST(GenerationPlan, CompletionsShareTheLimitOfPromptTokens) {
  const std::string prompt(501, 'x');
  GenerateCall call = Prompted(prompt);
  EXPECT_TRUE(Plan(call).ok());
  call.completions = 2;
  EXPECT_EQ(RefusalOf(Plan(call).status()), "number of prompt tokens times variants is 1002; it must be in [0, 1000]");
}

TEST(GenerationPlan, EachOfSeveralPromptsHasTheCompletionsThatItHasAlone) {
  GenerateCall call = Prompted("abc");
  call.prompts.push_back({.kind = TextInput::Kind::kText, .text = "de"});
  call.completions = 2;
  call.echo = true;
  call.seed = 42;
  const auto plan = Plan(call);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->requests.size(), 4U);
  EXPECT_THAT(plan->echoes, ::testing::ElementsAre("abc", "de"));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(plan->requests[i].prompt.size(), i < 2 ? 3U : 2U);
    EXPECT_EQ(plan->requests[i].sampling.completion, i % 2);
    EXPECT_EQ(plan->requests[i].sampling.seed, 42U);
  }
  call.prompts[1].text = "";
  EXPECT_THAT(RefusalOf(Plan(call).status()), HasSubstr("beginning#1 is empty"));
}

TEST(GenerationPlan, PromptsShareTheLimitsOfOneCall) {
  const std::string half(501, 'x');
  GenerateCall call = Prompted(half);
  call.prompts.push_back(call.prompts.front());
  EXPECT_EQ(RefusalOf(Plan(call).status()), "number of prompt tokens times variants is 1002; it must be in [0, 1000]");
  call = Prompted("a");
  call.prompts.resize(2049, call.prompts.front());
  EXPECT_THAT(RefusalOf(Plan(call).status()), HasSubstr("is 2049; it must be in [1, 2048]"));
  call.completions = 2;
  EXPECT_THAT(RefusalOf(Plan(call).status()), HasSubstr("is 2049; it must be in [1, 1024]"));
}

// The size of the queue also limits the completions, because a larger call could never be accepted.
TEST(GenerationPlan, CompletionsAreLimitedByTheModelsQueue) {
  core::ServedModel model{.name = "m", .version = 1, .kind = std::move(*ByteModel()), .load_duration = {}};
  std::get<core::ServedLanguageModel>(model.kind).max_items = 4;
  GenerateCall call = Prompted("abc");
  call.completions = 5;
  EXPECT_EQ(
      RefusalOf(PlanGeneration(call, *model.language_model(), kLimits, kPlainNames, core::RequestContext()).status()),
      "variants is 5; it must be in [1, 4]");
  EXPECT_EQ(LimitsOf(model, kLimits).completions, 4);
}

TEST(GenerationPlan, OneAnswerHasALimitOfTokens) {
  RequestLimits limits = kLimits;
  limits.answer_tokens = 1000;
  GenerateCall call = Prompted("abc");
  call.max_tokens = 500;
  call.completions = 2;
  EXPECT_TRUE(CheckFitsOneAnswer(*Plan(call), limits, kPlainNames).ok());
  call.completions = 3;
  EXPECT_EQ(RefusalOf(CheckFitsOneAnswer(*Plan(call), limits, kPlainNames)),
            "length times variants (Stream takes more) is 1500; it must be in [1, 1000]");
}

TEST(GenerationPlan, WithoutAVocabularyTheAnswerHasIds) {
  const std::vector<int32_t> ids = {5};
  GenerateCall call = {.prompts = {TextInput{.kind = TextInput::Kind::kIds, .ids = ids}}};
  const auto plan = PlanGeneration(call, *IdModel(), kLimits, kPlainNames, core::RequestContext());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->describe_tokens);
  call.stop = {"x"};
  EXPECT_THAT(RefusalOf(PlanGeneration(call, *IdModel(), kLimits, kPlainNames, core::RequestContext()).status()),
              HasSubstr("end is set"));
}

TEST(GenerationPlan, APromptMayBeUnsetOnlyWithASession) {
  GenerateCall call;
  EXPECT_EQ(RefusalOf(Plan(call).status()), "beginning is unset; it must have words or ids");
  call.session = core::SessionReference{.id = "talk"};
  EXPECT_TRUE(Plan(call).ok());
}

}  // namespace longshort::server::generation_plan_test
