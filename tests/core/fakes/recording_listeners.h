// Listeners and an observer that keep what they hear, and check the order in which they hear it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/language_model_requests.h"
#include "core/sampling/sampler.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/end_signal.h"

namespace longshort::core {

// What was heard may be read once `end` is.
class RecordingGenerationListener final : public GenerationListener {
 public:
  void OnPromptScored(std::vector<GeneratedToken> scored) override {
    EXPECT_FALSE(prompt.has_value());
    EXPECT_TRUE(deltas.empty());
    EXPECT_FALSE(end.ended());
    prompt = std::move(scored);
  }
  void OnDelta(GenerationDelta delta) override {
    EXPECT_FALSE(end.ended());
    EXPECT_FALSE(delta.bytes.empty() && delta.tokens.empty());
    bytes += delta.bytes;
    for (const GeneratedToken& token : delta.tokens) {
      tokens.push_back(token.token);
      generated.push_back(token);
    }
    deltas.push_back(std::move(delta));
    if (on_delta) on_delta();
  }
  void OnFinished(const absl::Status& end_status, const GenerationSummary& end_summary) override {
    EXPECT_FALSE(end.ended()) << "OnFinished was called twice";
    status = end_status;
    summary = end_summary;
    end.Notify();
  }

  std::optional<std::vector<GeneratedToken>> prompt;
  std::vector<GenerationDelta> deltas;
  std::string bytes;                      // of all deltas
  std::vector<int32_t> tokens;            // of all deltas
  std::vector<GeneratedToken> generated;  // of all deltas
  absl::Status status;
  GenerationSummary summary;
  EndSignal end;
  std::function<void()> on_delta;
};

class RecordingScoringListener final : public ScoringListener {
 public:
  void OnFinished(absl::StatusOr<Score> result) override {
    EXPECT_FALSE(end.ended()) << "OnFinished was called twice";
    score = std::move(result);
    end.Notify();
  }

  absl::StatusOr<Score> score = absl::UnknownError("not heard yet");
  EndSignal end;
};

class RecordingObserver final : public LanguageModelEngineObserver {
 public:
  void OnQueued(absl::Duration waited) override { queued.push_back(waited); }
  void OnPrefilled(absl::Duration prefill, int64_t prompt_tokens) override {
    const MutexLock lock(mutex_);
    prefilled.emplace_back(prefill, prompt_tokens);
  }
  void OnStep(absl::Duration step, int64_t rows) override { steps.emplace_back(step, rows); }
  void OnFirstToken(absl::Duration since_submission) override {
    const MutexLock lock(mutex_);
    first_tokens.push_back(since_submission);
  }
  void OnNextToken(absl::Duration since_previous) override {
    const MutexLock lock(mutex_);
    next_tokens.push_back(since_previous);
  }
  void OnFailure(const absl::Status& failure) override { failures.push_back(failure); }
  void OnWorkerRebuilt(const absl::Status& status) override { rebuilt.push_back(status); }
  void OnState(const LanguageModelEngineState& now) override { state = now; }

  std::vector<absl::Duration> queued;
  std::vector<std::pair<absl::Duration, int64_t>> prefilled;
  std::vector<std::pair<absl::Duration, int64_t>> steps;
  std::vector<absl::Duration> first_tokens;
  std::vector<absl::Duration> next_tokens;
  std::vector<absl::Status> failures;
  std::vector<absl::Status> rebuilt;
  LanguageModelEngineState state;

 private:
  Mutex mutex_;  // of what several threads that sample call
};

}  // namespace longshort::core
