// A StepLoop with all that it needs, driven by the test's own thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/generation/step_loop.h"
#include "core/requests/language_model_jobs.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/fake_tokenizer.h"
#include "tests/core/fakes/recording_listeners.h"
#include "tests/core/fakes/reference_answers.h"

namespace longshort::core {

// The pieces of SmallModelInfo's 16 ids: 0, 1, 3 and 15 are never sampled.
inline std::vector<std::string> SmallPieces() {
  return {"", "", "\n", "", "a", "b", "c", "d", "e", "f", "g", "h", "i", "jk", "lmn", ""};
}

// A step takes no time unless the test says otherwise, so what it costs stays unknown.
inline RequestQueue::Options RoomForAll() { return {.limits = {.max_queued_cost = absl::InfiniteDuration()}}; }

// One worker's loop.
class StepLoopHarness {
 public:
  // `workers`: of the queue.
  explicit StepLoopHarness(const StepLoop::Options& options = {},
                           const RequestQueue::Options& queue_options = RoomForAll(),
                           const models::LanguageModelInfo& info = SmallModelInfo(), int workers = 1)
      : model(info),
        vocabulary(*Vocabulary::Make(model.info().vocabulary_size, std::make_shared<FakeTokenizer>(SmallPieces()))),
        queue(queue_options, models::CpuWorkers(workers)),
        states(workers, queue, observer),
        loop(*StepLoop::Create(model, queue, clock, states, options)),
        options_(options) {}

  // Null if the queue refused it because it cannot make its deadline.
  std::shared_ptr<RecordingGenerationListener> Generate(GenerationRequest request) {
    auto listener = std::make_shared<RecordingGenerationListener>();
    return IsAdmitted(Submit(std::move(request), listener)) ? listener : nullptr;
  }
  absl::Status Submit(GenerationRequest request, std::shared_ptr<GenerationListener> listener) {
    return Push(MakeJob(std::move(request), std::move(listener), vocabulary, observer, sessions));
  }

  std::shared_ptr<RecordingScoringListener> Score(ScoringRequest request) {
    auto listener = std::make_shared<RecordingScoringListener>();
    const absl::Status status = Push(MakeJob(std::move(request), listener, vocabulary, observer, sessions));
    return IsAdmitted(status) ? listener : nullptr;
  }

  // Replaces a broken loop by a new one, as its worker does.
  bool RunOnce() {
    const bool more = loop->RunOnce();
    if (!loop->broken()) return more;
    loop.reset();
    loop = *StepLoop::Create(model, queue, clock, states, options_);
    ++rebuilt;
    return true;
  }

  void RunToEnd() {
    while (RunOnce()) ASSERT_TRUE(loop->CheckInvariants().ok()) << loop->CheckInvariants();
    EXPECT_EQ(loop->state().cache_bytes_used, 0);
    EXPECT_EQ(loop->state().active_streams, 0);
  }

  // What a request must generate, all max_tokens of it, found without the engine and its pages.
  std::vector<int32_t> TokensAlone(const GenerationRequest& request) const {
    return TokensAfter(model, vocabulary, request.prompt, request.sampling, request.max_tokens);
  }

  // The raw model's log-probability of history[index], index at least 1.
  float LogProbabilityAlone(absl::Span<const int32_t> history, int64_t index) const {
    return LogProbabilityOf(model, history, index);
  }

  std::string TextOf(const std::vector<int32_t>& tokens) const {
    std::string text;
    for (int32_t token : tokens) text += vocabulary.Decode(token);
    return text;
  }

  FakeClock clock;
  FakeLanguageModel model;
  RecordingObserver observer;
  Vocabulary vocabulary;
  SessionStore sessions{clock, {}};
  RequestQueue queue;
  WorkerStates states;
  std::unique_ptr<StepLoop> loop;
  int rebuilt = 0;

 private:
  static bool IsAdmitted(const absl::Status& status) {
    EXPECT_TRUE(status.ok() || absl::IsDeadlineExceeded(status)) << status;
    return status.ok();
  }

  absl::Status Push(absl::StatusOr<std::unique_ptr<Job>> job) {
    if (!job.ok()) return job.status();
    (*job)->times.submitted = clock.Now();
    return queue.Push(*std::move(job));
  }

  const StepLoop::Options options_;
};

// Tokens that look random, each in [4, 15); different for each `seed`.
inline std::vector<int32_t> SomeTokens(int64_t count, uint32_t seed = 0) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(4 + (i * i * 7 + i * 3 + seed * 5) % 11));
  return tokens;
}

inline GenerationRequest SomeGeneration(int64_t prompt_tokens, int64_t max_tokens, uint32_t seed = 0) {
  GenerationRequest request;
  request.prompt = SomeTokens(prompt_tokens, seed);
  request.max_tokens = max_tokens;
  request.sampling.seed = seed;
  return request;
}

inline ScoringRequest SomeScoring(int64_t tokens, uint32_t seed = 0) {
  ScoringRequest request;
  request.tokens = SomeTokens(tokens, seed);
  return request;
}

}  // namespace longshort::core
