// What requests have of the cache: room before they run, and not reading what was read before.

#include "core/generation/sequence.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/step_loop_harness.h"

namespace longshort::core::step_loop_cache_test {

using testing::HasSubstr;

// Pages cost 1000, 100 and 10 bytes. A stream of any length needs 3 window pages (W = 70), 9 memory pages (M + L and a
// block's rest are 152 tokens, 38 chunks of 12 vectors), 4 for the segment, and its open chunk.
constexpr int64_t kBytesOfAStream = 3 * 1000 + (9 + 4) * 100 + 10;

// This one reads 40 + 30 - 1 = 69 tokens, 17 chunks: two window pages, and four each for memory and segment.
TEST(StepLoopCache, AStreamsWholeNeedIsReservedFromAdmissionToEnd) {
  StepLoopHarness harness({.max_streams = 2, .steps = {.max_rows = 100}});
  EXPECT_EQ(harness.loop->state().cache_bytes_free, 2 * kBytesOfAStream);
  harness.Generate(SomeGeneration(40, 30));
  while (harness.loop->RunOnce()) {
    const LanguageModelEngineState state = harness.loop->state();
    EXPECT_EQ(state.cache.reserved.window, 2);
    EXPECT_EQ(state.cache.reserved.segment, 8);
    EXPECT_EQ(state.cache.reserved.open_chunk, 1);
    EXPECT_LE(state.cache_bytes_used, 2 * 1000 + 8 * 100 + 10);
    EXPECT_EQ(state.cache_bytes_used + state.cache_bytes_idle + state.cache_bytes_free, 2 * kBytesOfAStream);
    EXPECT_EQ(harness.observer.state.cache_bytes_used, state.cache_bytes_used);
  }
  EXPECT_EQ(harness.loop->state().cache_bytes_used, 0);
  EXPECT_EQ(harness.loop->state().cache.reserved.window, 0);
  EXPECT_EQ(harness.loop->state().cache_bytes_idle, 1000 + 6 * 100);  // the first block: 16 chunks, 192 vectors, twice
}

// Room for three streams of any length, and 16 might run: one long prompt is read at a time, so that there is always
// room for others.
TEST(StepLoopCache, LongPromptsThatAreReadLeaveHalfOfItToOthers) {
  StepLoopHarness harness({.max_streams = 16, .steps = {.max_rows = 8}, .cache_bytes = 3 * kBytesOfAStream + 16 * 10});
  harness.Generate(SomeGeneration(200, 1, 1));
  harness.Generate(SomeGeneration(200, 1, 2));
  const auto other = harness.Generate(SomeGeneration(3, 1, 3));
  harness.loop->RunOnce();
  EXPECT_TRUE(other->end.ended());
  EXPECT_EQ(harness.loop->state().active_streams, 1);
  EXPECT_EQ(harness.queue.size(), 1);
  harness.RunToEnd();
}

TEST(StepLoopCache, APromptThatWasReadIsNotReadAgain) {
  StepLoopHarness harness;
  const GenerationRequest request = SomeGeneration(200, 5);
  const auto first = harness.Generate(request);
  harness.RunToEnd();
  harness.observer.steps.clear();
  const auto second = harness.Generate(request);
  harness.RunToEnd();
  EXPECT_EQ(first->summary.reused_tokens, 0);
  EXPECT_EQ(second->summary.reused_tokens, 192);  // three blocks
  EXPECT_EQ(second->summary.prompt_tokens, 200);
  EXPECT_EQ(second->tokens, harness.TokensAlone(request));
  EXPECT_EQ(harness.observer.steps.size(), 5u);
  EXPECT_EQ(harness.loop->state().cache.counters.hits, 1);
  EXPECT_EQ(harness.loop->state().cache.counters.reused_tokens, 192);
}

// Its search takes place outside of the queue's lock.
TEST(StepLoopCache, ALongPromptThatWasReadIsNotReadAgain) {
  StepLoopHarness harness({.max_streams = 4});
  const ScoringRequest request = SomeScoring(20'000);
  harness.Score(request);
  harness.RunToEnd();
  GenerationRequest again = SomeGeneration(20'000, 1);
  const auto second = harness.Generate(again);
  const auto other = harness.Generate(SomeGeneration(3, 1, 1));
  harness.RunToEnd();
  EXPECT_TRUE(other->end.ended());
  EXPECT_EQ(second->summary.reused_tokens, 20'000 / 64 * 64);
}

// As the completions of one prompt do.
TEST(StepLoopCache, APromptThatSeveralBeginAtOnceIsReadOnce) {
  StepLoopHarness harness({.max_streams = 4, .steps = {.max_rows = 100}});
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    GenerationRequest request = SomeGeneration(1000, 1);
    request.sampling.seed = seed;
    listeners.push_back(harness.Generate(request));
    requests.push_back(std::move(request));
  }
  harness.RunToEnd();
  int64_t rows = 0;
  for (const auto& [time, step_rows] : harness.observer.steps) rows += step_rows;
  // A quarter of each step's rows goes round among them, and each reads what is behind the last block's end.
  EXPECT_LT(rows, 1000 * 4 / 3 + 4 * 100);
  int64_t reused = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(listeners[i]->tokens, harness.TokensAlone(requests[i]));
    reused += listeners[i]->summary.reused_tokens;
  }
  EXPECT_EQ(reused, 4 * 1000 - rows);  // one token each is generated and not read
}

// Eight rows a step, and 100 of a document to read. The request behind it has 264 tokens, 256 of them read before.
TEST(StepLoopCache, APromptThatWasReadDoesNotWaitInTheQueueForShorterOnes) {
  StepLoopHarness harness({.max_streams = 2, .steps = {.max_rows = 8}});
  const GenerationRequest request = SomeGeneration(264, 1);
  harness.Generate(request);
  harness.RunToEnd();
  const auto document = harness.Score(SomeScoring(100, 1));
  harness.loop->RunOnce();
  const auto known = harness.Generate(request);
  harness.loop->RunOnce();
  EXPECT_EQ(harness.queue.size(), 0);
  harness.loop->RunOnce();
  EXPECT_TRUE(known->end.ended());
  harness.Generate(SomeGeneration(264, 1, 2));
  harness.loop->RunOnce();
  EXPECT_EQ(harness.queue.size(), 1) << "nothing of this one was read before";
  EXPECT_FALSE(document->end.ended());
  harness.RunToEnd();
}

int64_t blocks_hashed = 0;
uint64_t CountingHash(uint64_t history, absl::Span<const int32_t> tokens) {
  ++blocks_hashed;
  return HashOfBlock(history, tokens);
}

// Before the first of two such prompts is read, at half of it, and at its end. At every step it is asked what those
// that wait would have to read.
TEST(StepLoopCache, WhatAWaitingPromptHasToReadIsSearchedForOnlyWhenSomethingWasRead) {
  StepLoopHarness harness;
  const auto cache = *PagedCache::Create(harness.model, {.window = 100, .segment = 100, .open_chunk = 1}, CountingHash);
  const GenerationRequest request = SomeGeneration(64 * 10 + 5, 1);
  const auto job = *MakeJob(request, std::make_shared<RecordingGenerationListener>(), harness.vocabulary,
                            harness.observer, harness.sessions);
  const auto first = *cache->Begin(request.prompt, 64 * 10, 1000);
  for (int64_t read = 0; read <= 10; read += 5) {
    const int64_t expected = 64 * (10 - read) + 5;
    EXPECT_EQ(TokensToRead(*cache, /*worker=*/0, *job), expected);
    blocks_hashed = 0;
    for (int step = 0; step < 10; ++step) EXPECT_EQ(TokensToRead(*cache, /*worker=*/0, *job), expected);
    EXPECT_EQ(blocks_hashed, 0);
    for (int block = 0; block < 5 && read < 10; ++block) {
      models::Slice slice;
      slice.tokens = absl::MakeConstSpan(request.prompt).subspan(first->position(), 64);
      ASSERT_TRUE(first->FillIn(slice).ok());
      first->OnRead(slice.tokens);
    }
  }
}

// A token takes 1 ms to be read, and others are running. No recent request found a prefix.
TEST(StepLoopCache, APromptThatWasReadIsNotRefusedForTheTimeThatItWouldTakeToReadIt) {
  StepLoopHarness harness({.cache_bytes = int64_t{20} << 20});
  harness.model.on_step = [&harness](absl::Span<const models::Slice> slices) {
    harness.clock.Advance(absl::Milliseconds(1));
    for (const models::Slice& slice : slices) harness.clock.Advance(absl::Milliseconds(1) * slice.tokens.size());
    return absl::OkStatus();
  };
  GenerationRequest known = SomeGeneration(3000, 1, 99);
  harness.Generate(known);
  harness.RunToEnd();
  for (int32_t i = 0; i < 11; ++i) {
    GenerationRequest other = SomeGeneration(300, 1, 1 + i);
    other.prompt[0] = 4 + i;
    harness.Generate(other);
    harness.RunToEnd();
  }
  const auto busy = harness.Generate(SomeGeneration(20, 500, 7));
  for (int i = 0; i < 5; ++i) harness.RunOnce();

  GenerationRequest unknown = known;
  unknown.prompt[0] = 14;
  unknown.context.deadline = known.context.deadline = harness.clock.Now() + absl::Seconds(1);
  const auto refused = harness.Generate(unknown), read = harness.Generate(known);
  while (!read->end.ended() || !refused->end.ended()) harness.RunOnce();
  EXPECT_TRUE(read->status.ok()) << read->status;
  EXPECT_GT(read->summary.reused_tokens, 2900);
  EXPECT_THAT(refused->status.message(), HasSubstr("the request needs at least 1.9"));
  EXPECT_FALSE(busy->end.ended());
}

// What one generated can be another's prompt.
TEST(StepLoopCache, GeneratedTokensAreFoundToo) {
  StepLoopHarness harness;
  const GenerationRequest request = SomeGeneration(100, 60);
  const auto first = harness.Generate(request);
  harness.RunToEnd();
  GenerationRequest next = SomeGeneration(1, 3);
  next.prompt = request.prompt;
  next.prompt.insert(next.prompt.end(), first->tokens.begin(), first->tokens.end());
  const auto second = harness.Generate(next);
  harness.RunToEnd();
  EXPECT_EQ(second->summary.reused_tokens, 128);
  EXPECT_EQ(second->tokens, harness.TokensAlone(next));
}

TEST(StepLoopCache, AtLeastOneTokenIsReadForItsLogits) {
  StepLoopHarness harness;
  harness.Generate(SomeGeneration(128, 1));
  harness.RunToEnd();
  const auto again = harness.Generate(SomeGeneration(128, 1));
  harness.RunToEnd();
  EXPECT_EQ(again->summary.reused_tokens, 64);
}

TEST(StepLoopCache, ARequestForThePromptsLogitsReadsAllOfIt) {
  StepLoopHarness harness;
  GenerationRequest request = SomeGeneration(200, 2);
  harness.Generate(request);
  harness.RunToEnd();
  request.prompt_log_probabilities = true;
  const auto generation = harness.Generate(request);
  ScoringRequest document;
  document.tokens = request.prompt;
  const auto scoring = harness.Score(document);
  harness.RunToEnd();
  EXPECT_EQ(generation->summary.reused_tokens, 0);
  EXPECT_EQ(generation->prompt->size(), 199u);
  EXPECT_EQ(scoring->score->scored_tokens, 199);
  EXPECT_EQ(harness.loop->state().cache.counters.hits, 0);
}

// Room for two long streams and a short one: the third long one waits, and the short one behind it with it.
TEST(StepLoopCache, WhatDoesNotFitNowWaitsAndIsNotOvertaken) {
  StepLoopHarness harness({.max_streams = 8, .steps = {.max_rows = 1000}, .cache_bytes = 2 * kBytesOfAStream + 8 * 10});
  const int64_t window = harness.loop->state().cache.free.window;
  ASSERT_GE(window, 6);
  ASSERT_LT(window, 9);
  for (uint32_t seed = 0; seed < 3; ++seed) harness.Generate(SomeGeneration(300, 20, seed));
  const auto small = harness.Generate(SomeGeneration(5, 1, 9));
  harness.loop->RunOnce();
  EXPECT_EQ(harness.loop->state().active_streams, 2);
  EXPECT_EQ(harness.queue.size(), 2);
  while (harness.loop->state().active_streams == 2 && !small->end.ended()) harness.loop->RunOnce();
  harness.RunToEnd();
  EXPECT_TRUE(small->status.ok());
}

TEST(StepLoopCache, ARequestThatWaitsForRoomCanBeCancelled) {
  StepLoopHarness harness({.max_streams = 8, .steps = {.max_rows = 100}, .cache_bytes = 2 * kBytesOfAStream + 8 * 10});
  for (uint32_t seed = 0; seed < 2; ++seed) harness.Generate(SomeGeneration(300, 20, seed));
  const GenerationRequest request = SomeGeneration(300, 20, 7);
  const auto waiting = harness.Generate(request);
  harness.loop->RunOnce();
  request.context.cancelled->store(true);
  harness.loop->RunOnce();
  EXPECT_EQ(waiting->status.code(), absl::StatusCode::kCancelled);
  harness.RunToEnd();
}

TEST(StepLoopCache, WhatNeverFitsIsRefusedNamingBytesAndLimit) {
  StepLoopHarness harness({.max_streams = 1, .steps = {.max_rows = 100}, .cache_bytes = 3600});
  const absl::Status status = harness.loop->cache().CheckFits(1000);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a sequence of 1000 tokens needs 4310 bytes of cache"));
  const auto refused = harness.Generate(SomeGeneration(1000, 1));
  const auto small = harness.Generate(SomeGeneration(50, 1));
  harness.RunToEnd();
  EXPECT_EQ(refused->status, status);
  EXPECT_TRUE(small->status.ok());
}

TEST(StepLoopCache, ABudgetTooSmallForABlockIsRefused) {
  FakeLanguageModel model;
  RequestQueue queue({.limits = {.max_queued = 1}});
  FakeClock clock;
  RecordingObserver observer;
  WorkerStates states(1, queue, observer);
  const auto loop = StepLoop::Create(model, queue, clock, states, {.steps = {.max_rows = 100}, .cache_bytes = 900});
  EXPECT_EQ(loop.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loop.status().message()),
              HasSubstr("a cache of 900 bytes is too small: 64 tokens need 1610 bytes; raise --cache-bytes"));
}

}  // namespace longshort::core::step_loop_cache_test
