// Engines of a language model over fake models that do as the test says, and calls of sessions to them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/generation/continuous_batching_engine.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_language_model.h"
#include "tests/core/fakes/fake_tokenizer.h"
#include "tests/core/fakes/recording_listeners.h"
#include "tests/core/fakes/step_loop_harness.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core {

class ContinuousBatchingEngineFixture : public testing::Test {
 protected:
  std::unique_ptr<ContinuousBatchingEngine> MakeEngine(const ContinuousBatchingEngine::Options& options = {}) {
    auto model = std::make_unique<FakeLanguageModel>(SmallModelInfoWithRealPages());
    model->on_step = on_step;
    model->on_rest = on_rest;
    model->on_replicate = on_replicate;
    auto engine =
        ContinuousBatchingEngine::Create(WeightsOf(std::move(model)), std::make_shared<FakeTokenizer>(SmallPieces()),
                                         std::make_unique<Observer>(on_state), clock_, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }

  // Returns once an engine refuses requests: its drain has begun. The requests that it takes until then end at once,
  // and no test reads their listeners.
  static void WaitUntilItDrains(LanguageModelEngine& engine) {
    GenerationRequest request;
    request.prompt = {1};
    request.max_tokens = 1;
    request.context.cancelled->store(true);
    while (!absl::IsUnavailable(engine.Generate(request, std::make_shared<RecordingGenerationListener>()))) {
      std::this_thread::yield();
    }
  }

  // The session of a talk.
  static SessionKey Key(int talk) { return {.client = "", .id = absl::StrCat("talk", talk)}; }

  // Begins a call of the session.
  static std::shared_ptr<RecordingGenerationListener> Begin(LanguageModelEngine& engine, int talk,
                                                            std::vector<int32_t> prompt, int64_t max_tokens = 10) {
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.session = SessionReference{.id = Key(talk).id};
    auto listener = std::make_shared<RecordingGenerationListener>();
    const absl::Status status = engine.Generate(std::move(request), listener);
    EXPECT_TRUE(status.ok()) << status;
    return listener;
  }

  // A call of the session, to its end.
  static std::shared_ptr<RecordingGenerationListener> Say(LanguageModelEngine& engine, int talk,
                                                          std::vector<int32_t> prompt, int64_t max_tokens = 10) {
    auto listener = Begin(engine, talk, std::move(prompt), max_tokens);
    EXPECT_TRUE(listener->end.Wait());
    EXPECT_TRUE(listener->status.ok()) << listener->status;
    return listener;
  }

  // Of the engines that are made later.
  std::function<absl::Status(absl::Span<const models::Slice>)> on_step;
  std::function<void()> on_rest;
  std::function<absl::Status()> on_replicate;
  std::function<void()> on_state;
  RealClock clock_;

 private:
  class Observer final : public LanguageModelEngineObserver {
   public:
    explicit Observer(std::function<void()> on_state) : on_state_(std::move(on_state)) {}

    void OnQueued(absl::Duration) override {}
    void OnPrefilled(absl::Duration, int64_t) override {}
    void OnStep(absl::Duration, int64_t) override {}
    void OnFirstToken(absl::Duration) override {}
    void OnNextToken(absl::Duration) override {}
    void OnFailure(const absl::Status&) override {}
    void OnWorkerRebuilt(const absl::Status&) override {}
    void OnState(const LanguageModelEngineState&) override {
      if (on_state_) on_state_();
    }

   private:
    const std::function<void()> on_state_;
  };
};

}  // namespace longshort::core
