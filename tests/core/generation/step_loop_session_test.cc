// Conversations: calls that go on where the last one ended, whatever became of its pages.

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_session_test {

std::vector<int32_t> Joined(std::vector<int32_t> first, const std::vector<int32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class StepLoopSessionTest : public testing::Test {
 protected:
  static GenerationRequest Turn(std::vector<int32_t> prompt, int64_t max_tokens) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.session = SessionReference{.id = "talk"};
    return request;
  }

  // One call; what it generates must be what the whole conversation so far, as one prompt, would have given.
  static std::shared_ptr<RecordingGenerationListener> Say(StepLoopHarness& harness, std::vector<int32_t>& talk,
                                                          const GenerationRequest& request) {
    talk = Joined(std::move(talk), request.prompt);
    GenerationRequest alone = request;
    alone.prompt = talk;
    const std::vector<int32_t> expected = harness.TokensAlone(alone);
    auto listener = harness.Generate(request);
    harness.RunToEnd();
    EXPECT_TRUE(listener->status.ok()) << listener->status;
    EXPECT_EQ(listener->tokens, expected);
    EXPECT_EQ(listener->summary.prompt_tokens, static_cast<int64_t>(request.prompt.size()));
    talk = Joined(std::move(talk), listener->tokens);
    EXPECT_EQ(listener->summary.session_tokens, static_cast<int64_t>(talk.size()));
    return listener;
  }
};

TEST_F(StepLoopSessionTest, ReadsOnlyWhatIsNew) {
  StepLoopHarness harness;
  std::vector<int32_t> talk;
  Say(harness, talk, Turn(SomeTokens(50), 10));
  harness.observer.steps.clear();
  const auto second = Say(harness, talk, Turn(SomeTokens(7, 1), 10));
  EXPECT_EQ(second->summary.reused_tokens, 59);
  // The token that was sampled last had not been read: 1 + 7 rows, then one for each token but the last.
  ASSERT_EQ(harness.observer.steps.size(), 10u);
  EXPECT_EQ(harness.observer.steps[0].second, 8);
}

// Eight rows a step, and 40 of a document to read: more than is new of the conversation, and less than all of it.
TEST_F(StepLoopSessionTest, ATurnDoesNotWaitInTheQueueForPromptsThatAreLongerThanIt) {
  StepLoopHarness harness({.max_streams = 2, .steps = {.max_rows = 8}});
  std::vector<int32_t> talk;
  Say(harness, talk, Turn(SomeTokens(50), 10));
  harness.Score(SomeScoring(40, 1));
  harness.loop->RunOnce();
  const auto turn = harness.Generate(Turn(SomeTokens(3, 2), 1));
  harness.loop->RunOnce();
  EXPECT_EQ(harness.queue.size(), 0);
  EXPECT_TRUE(turn->end.ended());
  harness.RunToEnd();
}

TEST_F(StepLoopSessionTest, GoesOnWithoutAnythingNew) {
  StepLoopHarness harness;
  std::vector<int32_t> talk;
  Say(harness, talk, Turn(SomeTokens(5), 3));
  Say(harness, talk, Turn({}, 20));
  Say(harness, talk, Turn({}, 1));
}

TEST_F(StepLoopSessionTest, WhatAStopStringCutOffWasNeverSaid) {
  StepLoopHarness harness;
  std::vector<int32_t> talk = SomeTokens(30);
  GenerationRequest request = Turn(talk, 40);
  const std::vector<int32_t> uncut = harness.TokensAlone(request);
  const std::string text = harness.TextOf(uncut);
  ASSERT_GT(text.size(), 20u);
  request.stop_strings = {text.substr(11, 3)};
  const auto listener = harness.Generate(request);
  harness.RunToEnd();
  ASSERT_EQ(listener->summary.finish_reason, FinishReason::kStopString);
  ASSERT_LT(listener->tokens.size(), static_cast<size_t>(listener->summary.generated_tokens));
  talk = Joined(std::move(talk), listener->tokens);
  EXPECT_EQ(listener->summary.session_tokens, static_cast<int64_t>(talk.size()));
  Say(harness, talk, Turn(SomeTokens(3, 2), 15));
}

TEST_F(StepLoopSessionTest, ScoringGoesOnTooAndScoresEveryNewToken) {
  StepLoopHarness harness;
  std::vector<int32_t> talk;
  Say(harness, talk, Turn(SomeTokens(20), 5));
  ScoringRequest request = SomeScoring(40, 3);
  request.session = SessionReference{.id = "talk", .must_exist = true};
  request.log_probabilities = true;
  const auto scored = harness.Score(request);
  harness.RunToEnd();
  ASSERT_TRUE(scored->score.ok()) << scored->score.status();
  EXPECT_EQ(scored->score->scored_tokens, 40);
  EXPECT_EQ(scored->score->reused_tokens, 24);
  talk = Joined(std::move(talk), request.tokens);
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_FLOAT_EQ(scored->score->tokens[i].log_probability, harness.LogProbabilityAlone(talk, 25 + i));
  }
  Say(harness, talk, Turn({}, 12));
}

TEST_F(StepLoopSessionTest, ACallThatEndsEarlyKeepsWhatWasDeliveredIfItSaysSo) {
  StepLoopHarness harness;
  std::vector<int32_t> talk;
  Say(harness, talk, Turn(SomeTokens(20), 5));
  for (const int64_t unread : {0, 1}) {  // of the delivered tokens, by the client
    GenerationRequest left = Turn(SomeTokens(10, 4), 100);
    left.session->keep_partial = true;
    left.session->expected_tokens = talk.size();
    const auto listener = harness.Generate(left);
    while (listener->tokens.size() < 3) harness.loop->RunOnce();
    left.context.cancelled->store(true);
    harness.RunToEnd();
    EXPECT_TRUE(absl::IsCancelled(listener->status));
    std::vector<int32_t> read = listener->tokens;
    read.resize(read.size() - unread);
    talk = Joined(Joined(std::move(talk), left.prompt), read);
    GenerationRequest next = Turn(SomeTokens(2, 5), 6);
    next.session->expected_tokens = talk.size();
    Say(harness, talk, next);
  }
  // Only a call that ended early can be cut.
  GenerationRequest lost = Turn(SomeTokens(2, 5), 6);
  lost.session->expected_tokens = talk.size() - 1;
  const auto listener = std::make_shared<RecordingGenerationListener>();
  EXPECT_TRUE(absl::IsFailedPrecondition(harness.Submit(lost, listener)));
}

TEST_F(StepLoopSessionTest, AFailedCallLeavesItAsItWas) {
  StepLoopHarness harness;
  std::vector<int32_t> talk;
  Say(harness, talk, Turn(SomeTokens(20), 5));
  const GenerationRequest cancelled = Turn(SomeTokens(10, 4), 100);
  const auto listener = harness.Generate(cancelled);
  for (int i = 0; i < 30; ++i) harness.loop->RunOnce();
  cancelled.context.cancelled->store(true);
  harness.RunToEnd();
  EXPECT_TRUE(absl::IsCancelled(listener->status));
  Say(harness, talk, Turn(SomeTokens(3, 5), 5));
}

TEST_F(StepLoopSessionTest, GoesOnOnlyFromWhatItsClientKnows) {
  StepLoopHarness harness;
  std::vector<int32_t> talk;
  GenerationRequest request = Turn(SomeTokens(20), 5);
  const auto submit_expecting = [&](int64_t tokens) {
    request.session->expected_tokens = tokens;
    return harness.Submit(request, std::make_shared<RecordingGenerationListener>());
  };
  EXPECT_TRUE(absl::IsNotFound(submit_expecting(3)));
  EXPECT_EQ(harness.sessions.counts().sessions, 0);
  request.session->expected_tokens = 0;
  Say(harness, talk, request);

  request = Turn(SomeTokens(3, 1), 5);
  for (const int64_t wrong : {0, 20, 24, 26}) {
    const absl::Status status = submit_expecting(wrong);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("talk holds 25 tokens"));
  }
  request.session->expected_tokens = 25;
  Say(harness, talk, request);
}

// Goes on with the conversation at the very moment that it hears of a call's end.
class HastyListener final : public GenerationListener {
 public:
  explicit HastyListener(SessionStore& sessions) : sessions_(sessions) {}
  void OnPromptScored(std::vector<GeneratedToken>) override {}
  void OnDelta(GenerationDelta) override {}
  void OnFinished(const absl::Status& status, const GenerationSummary&) override {
    end = status;
    opened = sessions_.Open({.client = "", .id = "talk"}, false).status();
  }

  absl::Status end = absl::UnknownError("not heard yet");
  absl::Status opened = absl::UnknownError("not tried yet");

 private:
  SessionStore& sessions_;
};

TEST_F(StepLoopSessionTest, IsFreeOnceItsCallHearsTheEnd) {
  StepLoopHarness harness;
  const auto finished = std::make_shared<HastyListener>(harness.sessions);
  ASSERT_TRUE(harness.Submit(Turn(SomeTokens(20), 5), finished).ok());
  harness.RunToEnd();
  EXPECT_TRUE(finished->end.ok()) << finished->end;
  EXPECT_TRUE(finished->opened.ok()) << finished->opened;

  const GenerationRequest request = Turn(SomeTokens(10, 4), 100);
  const auto cancelled = std::make_shared<HastyListener>(harness.sessions);
  ASSERT_TRUE(harness.Submit(request, cancelled).ok());
  for (int i = 0; i < 30; ++i) harness.loop->RunOnce();
  request.context.cancelled->store(true);
  harness.RunToEnd();
  EXPECT_TRUE(absl::IsCancelled(cancelled->end)) << cancelled->end;
  EXPECT_TRUE(cancelled->opened.ok()) << cancelled->opened;
}

TEST_F(StepLoopSessionTest, ADocumentOfOneTokenBeginsOne) {
  StepLoopHarness harness;
  ScoringRequest request = SomeScoring(1);
  request.session = SessionReference{.id = "talk"};
  const auto scored = harness.Score(request);
  harness.RunToEnd();
  ASSERT_TRUE(scored->score.ok());
  EXPECT_EQ(scored->score->session_tokens, 1);
  std::vector<int32_t> talk = request.tokens;
  Say(harness, talk, Turn({}, 4));
}

// A cache for one stream: every call of one conversation takes the pages of the others. What they lose is read again,
// for long ones only as far back as it matters.
TEST_F(StepLoopSessionTest, LongConversationsSurviveTheLossOfTheirPages) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 100}});
  std::vector<std::vector<int32_t>> talks(3);
  std::mt19937 random(7);
  int64_t read_again = 0;
  int64_t generated = 0;
  int64_t logit_rows = 0;
  harness.model.on_logits = [&logit_rows](std::vector<float>& logits) {
    logit_rows += static_cast<int64_t>(logits.size()) / SmallModelInfo().vocabulary_size;
  };
  for (int turn = 0; turn < 60; ++turn) {
    const size_t which = random() % talks.size();
    GenerationRequest request = Turn(SomeTokens(1 + random() % 60, turn), 1 + random() % 40);
    request.session->id = std::to_string(which);
    harness.observer.steps.clear();
    const int64_t before = static_cast<int64_t>(talks[which].size());
    generated += static_cast<int64_t>(Say(harness, talks[which], request)->tokens.size());
    int64_t rows = 0;
    for (const auto& step : harness.observer.steps) rows += step.second;
    read_again += std::max<int64_t>(0, rows - static_cast<int64_t>(talks[which].size()) + before);
    EXPECT_LE(rows, 500) << "more was read again than can matter";
  }
  EXPECT_EQ(logit_rows, generated) << "what is read again needs no logits";
  EXPECT_GT(read_again, 1000) << "the pages were never lost: the test shows nothing";
}

// Of the conversation only the first block is there, which lies before all that matters.
TEST_F(StepLoopSessionTest, WhatIsLeftOutBecauseItDoesNotMatterWasNotFoundInTheCache) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 100}});
  std::vector<int32_t> talk;
  Say(harness, talk, Turn(SomeTokens(600), 10));
  harness.Score(SomeScoring(900, 3));
  harness.RunToEnd();
  harness.Generate(SomeGeneration(70, 1));
  harness.RunToEnd();
  harness.observer.steps.clear();
  const CacheCounters before = harness.loop->state().cache.counters;
  EXPECT_EQ(Say(harness, talk, Turn(SomeTokens(5, 1), 10))->summary.reused_tokens, 0);
  EXPECT_LT(harness.observer.steps[0].second, 600);
  const CacheCounters after = harness.loop->state().cache.counters;
  EXPECT_EQ(after.hits, before.hits);
  EXPECT_EQ(after.reused_tokens, before.reused_tokens);
}

// A millisecond a row. The session's rows are lost before each call, so that most of what a call takes is for reading
// what the calls before it had read.
TEST_F(StepLoopSessionTest, WhatIsReadAgainSaysNothingOfWhatOthersWillTake) {
  StepLoopHarness harness({.max_streams = 1});
  harness.model.on_step = [&harness](absl::Span<const models::Slice> slices) {
    for (const models::Slice& slice : slices) harness.clock.Advance(absl::Milliseconds(slice.tokens.size()));
    return absl::OkStatus();
  };
  GenerationRequest request = SomeGeneration(500, 1);
  request.session = SessionReference{.id = "talk"};
  for (uint32_t call = 0; call < 20; ++call) {
    const auto listener = harness.Generate(request);
    harness.Score(SomeScoring(1));  // waits meanwhile, and has nothing to read
    harness.RunToEnd();
    ASSERT_TRUE(listener->status.ok()) << listener->status;
    request.prompt = SomeTokens(10, call);
    harness.loop.reset();
    harness.loop = *StepLoop::Create(harness.model, harness.queue, harness.clock, harness.states, {.max_streams = 1});
  }
  harness.Score(SomeScoring(101, 99));
  EXPECT_LT(harness.queue.load().waiting_cost, absl::Milliseconds(300)) << "it takes 100 ms";
  EXPECT_GT(harness.queue.load().waiting_cost, absl::Milliseconds(30));
  harness.RunToEnd();
}

}  // namespace longshort::core::step_loop_session_test
