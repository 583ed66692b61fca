// The engine with its own thread; run under the thread sanitizer too.
#include "core/generation/continuous_batching_engine.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/schedule/model_worker.h"
#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/continuous_batching_engine_fixture.h"
#include "tests/core/fakes/gate.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core::continuous_batching_engine_test {

using ContinuousBatchingEngineTest = ContinuousBatchingEngineFixture;

TEST_F(ContinuousBatchingEngineTest, RunsGenerationsAndScoringsOfManyThreadsAtOnce) {
  const auto engine = MakeEngine(
      {.queue = {.limits = {.max_queued = 1000}}, .step_loop = {.max_streams = 5, .steps = {.max_rows = 40}}});
  const StepLoopHarness reference;
  std::vector<std::thread> clients;
  for (uint32_t client = 0; client < 4; ++client) {
    clients.emplace_back([&engine, &reference, client] {
      for (uint32_t round = 0; round < 5; ++round) {
        const GenerationRequest request = SomeGeneration(20 + client, 30, 10 * client + round);
        const auto generation = std::make_shared<RecordingGenerationListener>();
        const auto scoring = std::make_shared<RecordingScoringListener>();
        ASSERT_TRUE(engine->Generate(request, generation).ok());
        ASSERT_TRUE(engine->Score(SomeScoring(50 + round), scoring).ok());
        ASSERT_TRUE(generation->end.Wait());
        ASSERT_TRUE(scoring->end.Wait());
        EXPECT_EQ(generation->tokens, reference.TokensAlone(request));
        EXPECT_TRUE(scoring->score.ok());
      }
    });
  }
  for (std::thread& client : clients) client.join();
  engine->Drain(absl::InfiniteFuture());
  const LanguageModelEngineState state = engine->state();
  EXPECT_EQ(state.queued_requests, 0);
  EXPECT_EQ(state.active_streams, 0);
  EXPECT_EQ(state.cache_bytes_used, 0);
}

TEST_F(ContinuousBatchingEngineTest, TheModelRestsOnceEachTimeItHasHadNothingToDoForAWhile) {
  std::counting_semaphore<> rested(0);
  on_rest = [&rested] { rested.release(); };
  const auto engine = MakeEngine();
  for (int round = 0; round < 2; ++round) {
    const auto scoring = std::make_shared<RecordingScoringListener>();
    ASSERT_TRUE(engine->Score(SomeScoring(5), scoring).ok());
    ASSERT_TRUE(scoring->end.Wait());
    EXPECT_TRUE(rested.try_acquire_for(std::chrono::seconds(30)));
  }
  EXPECT_FALSE(rested.try_acquire_for(3 * absl::ToChronoMilliseconds(kIdleTimeBeforeRest)));
  engine->Drain(absl::InfiniteFuture());
}

TEST_F(ContinuousBatchingEngineTest, TheModelRestsOnceWhileAStreamIsPaused) {
  std::counting_semaphore<> rested(0);
  on_rest = [&rested] { rested.release(); };
  const auto engine = MakeEngine();
  const GenerationRequest request = SomeGeneration(20, 10);
  request.context.paused->store(true);
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(request, listener).ok());
  EXPECT_TRUE(rested.try_acquire_for(std::chrono::seconds(30)));
  EXPECT_FALSE(rested.try_acquire_for(3 * absl::ToChronoMilliseconds(kIdleTimeBeforeRest)));
  request.context.paused->store(false);
  EXPECT_TRUE(listener->end.Wait());
}

TEST_F(ContinuousBatchingEngineTest, SessionsEndWhileTheWorkerIsBusy) {
  class CountingObserver final : public SessionObserver {
   public:
    explicit CountingObserver(std::atomic<int64_t>& sessions) : sessions_(sessions) {}
    void OnSessions(int64_t sessions, int64_t /*tokens*/) override { sessions_ = sessions; }

   private:
    std::atomic<int64_t>& sessions_;
  };
  FakeClock clock;
  std::atomic<int64_t> sessions = 0;
  const auto store = std::make_shared<SessionStore>(clock, SessionStore::Options{.time_to_live = absl::Minutes(1)},
                                                    std::make_unique<CountingObserver>(sessions));
  auto model = std::make_unique<FakeLanguageModel>();
  std::vector<int64_t> counts;  // before each step
  model->on_step = [&](absl::Span<const models::Slice>) {
    counts.push_back(sessions);
    clock.Advance(absl::Seconds(1));
    return absl::OkStatus();
  };
  ContinuousBatchingEngine::Options options;
  options.session_store = store;
  const auto engine = *ContinuousBatchingEngine::Create(
      WeightsOf(std::move(model)), std::make_shared<FakeTokenizer>(SmallPieces()), nullptr, clock, options);
  Say(*engine, 1, SomeTokens(5), /*max_tokens=*/1);
  const auto busy = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(SomeGeneration(5, 80), busy).ok());
  ASSERT_TRUE(busy->end.Wait());
  ASSERT_EQ(counts.size(), 81u);
  EXPECT_EQ(counts[2], 1);
  EXPECT_EQ(counts.back(), 0);
}

TEST_F(ContinuousBatchingEngineTest, RefusesRequestsBeyondTheQueueAndTheirListenersNeverHear) {
  Gate gate;
  on_step = [&gate](absl::Span<const models::Slice>) {
    gate.Pass();
    return absl::OkStatus();
  };
  const auto engine =
      MakeEngine({.queue = {.limits = {.max_queued = 2}}, .step_loop = {.max_streams = 1, .steps = {.max_rows = 64}}});
  const auto running = std::make_shared<RecordingScoringListener>();
  ASSERT_TRUE(engine->Score(SomeScoring(5), running).ok());
  gate.WaitForArrival();
  const auto waiting = std::make_shared<RecordingScoringListener>();
  ASSERT_TRUE(engine->Score(SomeScoring(5), waiting).ok());
  ASSERT_TRUE(engine->Score(SomeScoring(5), std::make_shared<RecordingScoringListener>()).ok());
  EXPECT_EQ(engine->state().queued_requests, 2);

  const auto refused = std::make_shared<RecordingScoringListener>();
  EXPECT_EQ(engine->Score(SomeScoring(5), refused).code(), absl::StatusCode::kResourceExhausted);
  gate.Open();
  EXPECT_TRUE(waiting->end.Wait());
  engine->Drain(absl::InfiniteFuture());
  EXPECT_FALSE(refused->end.ended());
}

TEST_F(ContinuousBatchingEngineTest, ACacheOfFewerBytesThanWorkersIsTooSmall) {
  ContinuousBatchingEngine::Options options;
  options.workers = models::CpuWorkers(2);
  options.step_loop.cache_bytes = 1;
  const auto engine = ContinuousBatchingEngine::Create(WeightsOf(std::make_unique<FakeLanguageModel>()), nullptr,
                                                       nullptr, clock_, options);
  EXPECT_FALSE(engine.ok());
}

TEST_F(ContinuousBatchingEngineTest, AWorkerHasTheCacheThatItsDeviceSays) {
  const auto cache_bytes = [this](std::vector<models::WorkerDevice> workers) {
    const auto engine = MakeEngine({.step_loop = {.max_streams = 4}, .workers = std::move(workers)});
    return engine->state().cache_bytes_free;
  };
  const models::WorkerDevice small = {.memory_bytes = 40'000},
                             large = {.kind = models::DeviceKind::kCuda, .memory_bytes = 120'000};
  const int64_t of_both = cache_bytes({small, large});
  EXPECT_GT(of_both, 150'000);
  EXPECT_LE(of_both, 160'000);
}

TEST_F(ContinuousBatchingEngineTest, AllWorkersSayTheirMemoryOrNone) {
  ContinuousBatchingEngine::Options options;
  options.workers = {{.memory_bytes = 40'000}, {.kind = models::DeviceKind::kCuda}};
  const auto create = [&] {
    return ContinuousBatchingEngine::Create(WeightsOf(std::make_unique<FakeLanguageModel>()), nullptr, nullptr, clock_,
                                            options)
        .status();
  };
  EXPECT_EQ(create(), absl::InvalidArgumentError("1 of 2 workers set memory_bytes; all or none must"));
  options.workers.clear();
  EXPECT_EQ(create(), absl::InvalidArgumentError("workers is 0, must be at least 1"));
}

TEST_F(ContinuousBatchingEngineTest, DrainFinishesWhatIsThereAndRefusesTheRest) {
  const auto engine = MakeEngine();
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(SomeGeneration(10, 200), listener).ok());
  engine->Drain(clock_.Now() + absl::Seconds(10));
  EXPECT_TRUE(listener->end.ended());
  EXPECT_TRUE(listener->status.ok()) << listener->status;
  EXPECT_EQ(engine->Generate(SomeGeneration(10, 2), listener).code(), absl::StatusCode::kUnavailable);
}

TEST_F(ContinuousBatchingEngineTest, DrainEndsTheRestAtItsDeadline) {
  on_step = [](absl::Span<const models::Slice>) {
    absl::SleepFor(absl::Milliseconds(1));
    return absl::OkStatus();
  };
  const auto engine = MakeEngine({.queue = {.limits = {.max_queued_cost = absl::InfiniteDuration()}},
                                  .step_loop = {.max_streams = 1, .steps = {.max_rows = 64}}});
  const auto running = std::make_shared<RecordingGenerationListener>();
  const auto waiting = std::make_shared<RecordingScoringListener>();
  ASSERT_TRUE(engine->Generate(SomeGeneration(10, 1000000), running).ok());
  ASSERT_TRUE(engine->Score(SomeScoring(10), waiting).ok());
  engine->Drain(clock_.Now() + absl::Milliseconds(20));
  EXPECT_TRUE(running->end.ended());
  EXPECT_TRUE(waiting->end.ended());
  EXPECT_EQ(running->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(waiting->score.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ContinuousBatchingEngineTest, AnEarlierDeadlineOvertakesADrainThatWaits) {
  const auto engine = MakeEngine();
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(SomeGeneration(10, 1000000), listener).ok());
  std::thread patient([&engine] { engine->Drain(absl::InfiniteFuture()); });
  WaitUntilItDrains(*engine);
  EXPECT_FALSE(listener->end.ended());
  engine->Drain(absl::InfinitePast());
  patient.join();
  EXPECT_EQ(listener->status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(ContinuousBatchingEngineTest, ItsDestructorEndsWhatIsLeft) {
  const auto running = std::make_shared<RecordingGenerationListener>();
  const auto waiting = std::make_shared<RecordingScoringListener>();
  {
    const auto engine = MakeEngine({.queue = {.limits = {.max_queued_cost = absl::InfiniteDuration()}},
                                    .step_loop = {.max_streams = 1, .steps = {.max_rows = 64}}});
    ASSERT_TRUE(engine->Generate(SomeGeneration(10, 1000000), running).ok());
    ASSERT_TRUE(engine->Score(SomeScoring(10), waiting).ok());
  }
  EXPECT_TRUE(running->end.ended());
  EXPECT_EQ(running->status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(waiting->end.ended());
}

// A worker that polled would report thousands of states before its model rests.
TEST_F(ContinuousBatchingEngineTest, SleepsWhileThereIsNothingToDoAndWakesForARequest) {
  std::atomic<int> states = 0;
  on_state = [&states] { ++states; };
  std::counting_semaphore<> rested(0);
  on_rest = [&rested] { rested.release(); };
  const auto engine = MakeEngine();
  for (int round = 1; round <= 3; ++round) {
    const int before = states;
    const auto listener = std::make_shared<RecordingScoringListener>();
    ASSERT_TRUE(engine->Score(SomeScoring(10), listener).ok());
    ASSERT_TRUE(listener->end.Wait());
    ASSERT_TRUE(rested.try_acquire_for(std::chrono::seconds(30)));
    EXPECT_LT(states - before, 20);
  }
}

TEST_F(ContinuousBatchingEngineTest, CancellationFromAnotherThreadEndsTheStream) {
  const auto engine = MakeEngine();
  const GenerationRequest request = SomeGeneration(10, 1000000);
  const auto listener = std::make_shared<RecordingGenerationListener>();
  std::binary_semaphore streams(0);
  listener->on_delta = [&] {
    if (listener->deltas.size() == 1) streams.release();
  };
  ASSERT_TRUE(engine->Generate(request, listener).ok());
  ASSERT_TRUE(streams.try_acquire_for(std::chrono::seconds(30)));
  request.context.cancelled->store(true);
  ASSERT_TRUE(listener->end.Wait());
  EXPECT_EQ(listener->status.code(), absl::StatusCode::kCancelled);
}

TEST_F(ContinuousBatchingEngineTest, RefusesOptionsOutOfRange) {
  const auto engine = ContinuousBatchingEngine::Create(WeightsOf(std::make_unique<FakeLanguageModel>()), nullptr,
                                                       nullptr, clock_, {.queue = {.limits = {.max_queued = 0}}});
  EXPECT_EQ(engine.status(), absl::InvalidArgumentError("max_queued is 0, must be at least 1"));
}

TEST_F(ContinuousBatchingEngineTest, RefusesATokenizerOfAnotherModel) {
  const auto engine = ContinuousBatchingEngine::Create(WeightsOf(std::make_unique<FakeLanguageModel>()),
                                                       std::make_shared<FakeTokenizer>(std::vector<std::string>{"a"}),
                                                       nullptr, clock_, {});
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ContinuousBatchingEngineTest, WorkersRunSideBySide) {
  Gate gate;
  on_step = [&gate](absl::Span<const models::Slice>) {
    gate.Pass();
    return absl::OkStatus();
  };
  const auto engine = MakeEngine({.step_loop = {.max_streams = 2}, .workers = models::CpuWorkers(2)});
  const auto first = std::make_shared<RecordingGenerationListener>(),
             second = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(SomeGeneration(5, 3), first).ok());
  ASSERT_TRUE(engine->Generate(SomeGeneration(5, 3, 1), second).ok());
  gate.WaitForArrival(2);
  gate.Open();
  EXPECT_TRUE(first->end.Wait());
  EXPECT_TRUE(second->end.Wait());
}

// Sixteen conversations of three calls each, all at once: what the calls before said is read once only, wherever it was
// read. Half of a worker's 40 streams are for long prompts: even if all come to one worker, none stands aside there.
TEST_F(ContinuousBatchingEngineTest, ASessionStaysWithTheWorkerThatHasItsRows) {
  const auto engine = MakeEngine({.step_loop = {.max_streams = 120}, .workers = models::CpuWorkers(3)});
  const StepLoopHarness reference;
  std::vector<std::thread> clients;
  for (uint32_t client = 0; client < 16; ++client) {
    clients.emplace_back([&engine, &reference, client] {
      std::vector<int32_t> history;
      for (uint32_t call = 0; call < 3; ++call) {
        GenerationRequest request = SomeGeneration(70 + client, 10, client * 3 + call);
        request.session = SessionReference{.id = absl::StrCat("talk ", client)};
        GenerationRequest alone = request;
        alone.prompt.insert(alone.prompt.begin(), history.begin(), history.end());
        const auto listener = std::make_shared<RecordingGenerationListener>();
        ASSERT_TRUE(engine->Generate(request, listener).ok());
        ASSERT_TRUE(listener->end.Wait());
        ASSERT_EQ(listener->tokens, reference.TokensAlone(alone));
        if (call > 0) {
          EXPECT_EQ(listener->summary.reused_tokens, static_cast<int64_t>(history.size()) - 1);
        }
        history = alone.prompt;
        history.insert(history.end(), listener->tokens.begin(), listener->tokens.end());
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(ContinuousBatchingEngineTest, WorkersThatThrowAreRebuiltUnnoticed) {
  std::atomic<int> steps = 0, replicas = 0;
  on_step = [&steps](absl::Span<const models::Slice>) -> absl::Status {
    if (++steps % 37 == 0) throw std::runtime_error("device lost");
    return absl::OkStatus();
  };
  on_replicate = [&replicas] {
    ++replicas;
    return absl::OkStatus();
  };
  const auto engine = MakeEngine({.step_loop = {.max_streams = 8}, .workers = models::CpuWorkers(2)});
  const StepLoopHarness reference;
  std::vector<std::thread> clients;
  for (uint32_t client = 0; client < 4; ++client) {
    clients.emplace_back([&engine, &reference, client] {
      for (uint32_t round = 0; round < 5; ++round) {
        const GenerationRequest request = SomeGeneration(20 + 30 * client, 30, 10 * client + round);
        const auto listener = std::make_shared<RecordingGenerationListener>();
        ASSERT_TRUE(engine->Generate(request, listener).ok());
        ASSERT_TRUE(listener->end.Wait());
        EXPECT_TRUE(listener->status.ok()) << listener->status;
        EXPECT_EQ(listener->tokens, reference.TokensAlone(request));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(replicas, 2);
  engine->Drain(absl::InfiniteFuture());  // a worker may not have reported yet that another took its requests
  EXPECT_EQ(engine->state().active_streams, 0);
  EXPECT_EQ(engine->state().cache_bytes_used, 0);
}

// It fails fast, and so would always run the fewest: each try of a request would be there.
TEST_F(ContinuousBatchingEngineTest, AWorkerThatKeepsFailingLosesNoAnswer) {
  std::mutex mutex;
  std::thread::id bad;
  std::atomic<int> failures = 0;
  on_step = [&](absl::Span<const models::Slice>) {
    {
      std::lock_guard lock(mutex);
      if (bad == std::thread::id()) bad = std::this_thread::get_id();
    }
    absl::SleepFor(absl::Microseconds(200));
    if (std::this_thread::get_id() != bad) return absl::OkStatus();
    ++failures;
    return absl::InternalError("device lost");
  };
  const auto engine = MakeEngine(
      {.queue = {.limits = {.max_queued = 100}}, .step_loop = {.max_streams = 8}, .workers = models::CpuWorkers(2)});
  const StepLoopHarness reference;
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<RecordingGenerationListener>> listeners;
  for (uint32_t i = 0; i < 40; ++i) {
    requests.push_back(SomeGeneration(20, 50, i));
    listeners.push_back(std::make_shared<RecordingGenerationListener>());
    ASSERT_TRUE(engine->Generate(requests.back(), listeners.back()).ok());
    absl::SleepFor(absl::Milliseconds(5));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(listeners[i]->end.Wait());
    EXPECT_TRUE(listeners[i]->status.ok()) << listeners[i]->status;
    EXPECT_EQ(listeners[i]->tokens, reference.TokensAlone(requests[i]));
  }
  EXPECT_LT(failures, 20) << "its new models are tried only now and then";
}

// The other one has nothing to do, but stays as long as there may be something.
TEST_F(ContinuousBatchingEngineTest, WhileDrainingAnotherWorkerTakesOverWhatOneCannotEnd) {
  Gate gate;
  std::atomic<int> steps = 0, replicas = 0;
  on_step = [&](absl::Span<const models::Slice>) -> absl::Status {
    if (++steps > 1) return absl::OkStatus();
    gate.Pass();
    throw std::runtime_error("device lost");
  };
  on_replicate = [&replicas] { return ++replicas > 2 ? absl::ResourceExhaustedError("never") : absl::OkStatus(); };
  const auto engine = MakeEngine({.workers = models::CpuWorkers(2)});
  const StepLoopHarness reference;
  const GenerationRequest request = SomeGeneration(20, 10);
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(request, listener).ok());
  gate.WaitForArrival();
  std::thread drain([&] { engine->Drain(clock_.Now() + absl::Seconds(10)); });
  WaitUntilItDrains(*engine);
  gate.Open();
  drain.join();
  EXPECT_TRUE(listener->status.ok()) << listener->status;
  EXPECT_EQ(listener->tokens, reference.TokensAlone(request));
}

TEST_F(ContinuousBatchingEngineTest, AsLongAsNoModelIsToBeHadNothingRunsAndThenItGoesOn) {
  bool threw = false;
  std::atomic<int> replicas = 0;
  on_step = [&threw](absl::Span<const models::Slice>) -> absl::Status {
    if (!std::exchange(threw, true)) throw std::runtime_error("device lost");
    return absl::OkStatus();
  };
  on_replicate = [&replicas] { return ++replicas == 2 ? absl::ResourceExhaustedError("later") : absl::OkStatus(); };
  const auto engine = MakeEngine();
  const StepLoopHarness reference;
  const GenerationRequest request = SomeGeneration(20, 10);
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(request, listener).ok());
  ASSERT_TRUE(listener->end.Wait());
  EXPECT_EQ(listener->tokens, reference.TokensAlone(request));
  EXPECT_EQ(replicas, 3);
}

TEST_F(ContinuousBatchingEngineTest, WithoutAnyModelRequestsEndWithTheEngine) {
  std::atomic<int> replicas = 0;
  std::counting_semaphore<> refused(0);
  on_step = [](absl::Span<const models::Slice>) -> absl::Status { throw std::runtime_error("device lost"); };
  on_replicate = [&] {
    if (++replicas == 1) return absl::OkStatus();
    refused.release();
    return absl::ResourceExhaustedError("never");
  };
  const auto engine = MakeEngine();
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(SomeGeneration(20, 10), listener).ok());
  ASSERT_TRUE(refused.try_acquire_for(std::chrono::seconds(30)));
  EXPECT_FALSE(listener->end.ended()) << "it waits for a model";
  engine->Drain(clock_.Now());
  EXPECT_EQ(listener->status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(ContinuousBatchingEngineTest, APausedStreamGoesOnSoonAfterItsClientTakesSomethingAgain) {
  const auto engine = MakeEngine();
  const StepLoopHarness reference;
  const GenerationRequest request = SomeGeneration(20, 10);
  request.context.paused->store(true);
  const auto listener = std::make_shared<RecordingGenerationListener>();
  ASSERT_TRUE(engine->Generate(request, listener).ok());
  request.context.paused->store(false);
  ASSERT_TRUE(listener->end.Wait());
  EXPECT_EQ(listener->tokens, reference.TokensAlone(request));
}

}  // namespace longshort::core::continuous_batching_engine_test
