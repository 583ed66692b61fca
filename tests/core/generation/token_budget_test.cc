// What the requests of an engine hold of its token budget.
#include "core/generation/continuous_batching_engine.h"
#include "core/schedule/refusal.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/continuous_batching_engine_fixture.h"
#include "tests/core/fakes/gate.h"

namespace longshort::core::token_budget_test {

using TokenBudgetTest = ContinuousBatchingEngineFixture;

TEST_F(TokenBudgetTest, RefusesMorePromptTokensThanItsBudgetUntilThoseThereHaveEnded) {
  Gate gate;
  on_step = [&gate](absl::Span<const models::Slice>) {
    gate.Pass();
    return absl::OkStatus();
  };
  const auto budgets = PromptTokenBudgets(200);
  const auto engine = MakeEngine({.token_budgets = budgets, .step_loop = {}});
  const auto running = std::make_shared<RecordingScoringListener>();
  ASSERT_TRUE(engine->Score(SomeScoring(60), running).ok());
  gate.WaitForArrival();

  const auto refused = std::make_shared<RecordingGenerationListener>();
  EXPECT_EQ(engine->Generate(SomeGeneration(50, 2), refused).code(), absl::StatusCode::kResourceExhausted);
  GenerationRequest one_of_five = SomeGeneration(10, 2);
  one_of_five.context.position_in_call = {.index = 0, .count = 5, .share = 0.2};
  EXPECT_EQ(engine->Generate(one_of_five, refused).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(budgets->all()->held(), 64) << "its vector has room for";
  ASSERT_TRUE(engine->Score(SomeScoring(5), std::make_shared<RecordingScoringListener>()).ok());
  const auto refusal = GetRefusal(engine->Generate(SomeGeneration(50, 2), refused));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->retry_after, absl::Seconds(1)) << "prompts of this size take longer than the queue's 50 ms";
  EXPECT_EQ(refusal->queue_depth, 1);
  gate.Open();
  EXPECT_TRUE(running->end.Wait());
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(budgets->all()->held(), 0);
  EXPECT_FALSE(refused->end.ended());
}

TEST_F(TokenBudgetTest, AClientThatTakesAllItCanLeavesRoomForOthers) {
  Gate gate;
  on_step = [&gate](absl::Span<const models::Slice>) {
    gate.Pass();
    return absl::OkStatus();
  };
  const auto engine = MakeEngine({.token_budgets = PromptTokenBudgets(1000), .step_loop = {}});
  const auto score = [&](const char* client, int64_t tokens) {
    ScoringRequest request = SomeScoring(tokens);
    request.context.client = client;
    return engine->Score(std::move(request), std::make_shared<RecordingScoringListener>());
  };
  int64_t admitted = 0;
  while (score("greedy", 10).ok()) ++admitted;
  EXPECT_LE(admitted, 50);
  EXPECT_EQ(score("greedy", 10).message(),
            "this client's requests in flight hold 496 tokens and this one has 16; together they may hold 500");
  EXPECT_TRUE(score("other", 120).ok());
  EXPECT_TRUE(score("third", 100).ok());
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
}

TEST_F(TokenBudgetTest, CountsGeneratedTokensAndOptionsInItsBudget) {
  const auto budgets = PromptTokenBudgets(200);
  std::vector<int64_t> held;
  on_step = [&](absl::Span<const models::Slice>) {
    held.push_back(budgets->all()->held());
    return absl::OkStatus();
  };
  const auto engine = MakeEngine({.token_budgets = budgets, .step_loop = {}});
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(SomeGeneration(10, 200), listener).ok());
  ASSERT_TRUE(listener->end.Wait());
  ASSERT_EQ(held.size(), 200);
  EXPECT_EQ(held.front(), 16) << "the prompt's vector has room for";
  EXPECT_GE(held.back(), 209);
  GenerationRequest biased = SomeGeneration(10, 2);
  for (int token = 0; token < 60; ++token) biased.sampling.logit_bias.emplace_back(0, 1.0F);
  const auto refused = std::make_shared<RecordingGenerationListener>();
  EXPECT_EQ(engine->Generate(biased, refused).code(), absl::StatusCode::kResourceExhausted);
  GenerationRequest scored = SomeGeneration(30, 2);  // 29 tokens of the prompt have a score of 32 bytes
  scored.prompt_log_probabilities = true;
  EXPECT_EQ(engine->Generate(scored, refused).code(), absl::StatusCode::kResourceExhausted);
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(budgets->all()->held(), 0);
}

}  // namespace longshort::core::token_budget_test
