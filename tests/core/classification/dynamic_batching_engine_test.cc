// The engine of a classifier with its own threads; run under the thread sanitizer too.
#include "core/classification/dynamic_batching_engine.h"

#include <atomic>
#include <chrono>
#include <new>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/schedule/model_worker.h"
#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/dynamic_batching_engine_fixture.h"
#include "tests/core/fakes/gate.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core::dynamic_batching_engine_test {

using ::testing::ElementsAre;
using Listener = RecordingClassificationListener;
using DynamicBatchingEngineTest = DynamicBatchingEngineFixture;

TEST_F(DynamicBatchingEngineTest, TheModelRestsOnceEachTimeItHasHadNothingToDoForAWhile) {
  std::counting_semaphore<> rested(0);
  on_rest = [&rested] { rested.release(); };
  const auto engine = MakeEngine();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(CodeOf(*Submit(*engine, Document(1))), absl::StatusCode::kOk);
    EXPECT_TRUE(rested.try_acquire_for(std::chrono::seconds(30)));
  }
  EXPECT_FALSE(rested.try_acquire_for(3 * absl::ToChronoMilliseconds(kIdleTimeBeforeRest)));
  engine->Drain(absl::InfiniteFuture());
}

TEST_F(DynamicBatchingEngineTest, EveryItemOfManyThreadsGetsItsOwnLogits) {
  const auto engine = MakeEngine();
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&engine, client] {
      for (int round = 0; round < 50; ++round) {
        const int32_t id = 1 + 100 * client + round;
        const auto ready = Submit(*engine, Document(id));
        const auto prepared = Submit(*engine, [id] { return Document(id, 2); });
        ASSERT_TRUE(ready->end.Wait() && prepared->end.Wait());
        EXPECT_EQ(ready->scores->row, FakeClassifier::LogitsOf(Document(id)));
        EXPECT_EQ(prepared->scores->row, FakeClassifier::LogitsOf(Document(id, 2)));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(engine->state().waiting_items, 0);
  EXPECT_EQ(engine->state().waiting_bytes, 0);
  EXPECT_EQ(record_->ended.size(), 400u);
  EXPECT_EQ(record_->prepared.size(), 200u);
}

TEST_F(DynamicBatchingEngineTest, EveryItemGetsTheOutputThatItAsksFor) {
  using models::ClassifierOutput;
  Gate gate;
  HoldBatches(gate);
  const auto engine = MakeEngine();
  std::vector<std::pair<ClassifierOutput, std::shared_ptr<RecordingClassificationListener>>> items;
  for (int32_t id = 0; id < 30; ++id) {
    const auto output = static_cast<ClassifierOutput>(id % 4);
    items.emplace_back(output, std::make_shared<RecordingClassificationListener>());
    ASSERT_EQ(engine->Classify({.context = {}, .item = Document(id), .output = output}, items.back().second),
              absl::OkStatus());
  }
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
  for (int32_t id = 0; id < 30; ++id) {
    const auto& [output, listener] = items[id];
    ASSERT_TRUE(listener->scores.ok());
    EXPECT_EQ(listener->scores->row, FakeClassifier::RowOf(Document(id), output)) << id;
  }
  // The first batch has what was there when the worker began it. All others are there when it ends.
  std::lock_guard lock(record_->mutex);
  EXPECT_LE(record_->batches.size(), 5u);
}

TEST_F(DynamicBatchingEngineTest, AnIdleWorkerTakesTheFirstItemAtOnceAndThenAllThatCameMeanwhile) {
  Gate gate;
  HoldBatches(gate);
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 3}}});
  Submit(*engine, Document(1));
  gate.WaitForArrival();
  for (int32_t id = 2; id <= 6; ++id) Submit(*engine, Document(id));
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(BatchSizes(), ElementsAre(1, 3, 2));
}

TEST_F(DynamicBatchingEngineTest, RefusesItemsBeyondTheQueueAndTheirListenersNeverHear) {
  Gate gate;
  HoldBatches(gate);
  const auto engine = MakeEngine({.items = {.limits = {.max_queued = 2}}});
  Submit(*engine, Document(1));
  gate.WaitForArrival();
  Submit(*engine, Document(2));
  Submit(*engine, Document(3));
  const auto refused = std::make_shared<Listener>();
  const absl::Status full = engine->Classify({.context = {}, .item = Document(4), .bytes = 1}, refused);
  EXPECT_EQ(full.message(), "the queue is full: 2 requests wait before this one, the limit is 2");
  ASSERT_TRUE(GetRefusal(full).has_value());
  EXPECT_EQ(GetRefusal(full)->queue_depth, 2);
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_FALSE(refused->end.ended());
}

TEST_F(DynamicBatchingEngineTest, RefusesBytesBeyondTheLimit) {
  Gate gate;
  HoldBatches(gate);
  const auto engine = MakeEngine({.items = {.waiting_bytes = WaitingByteBudgets(200)}});
  EXPECT_EQ(engine->Classify({.context = {}, .item = Document(1), .bytes = 101}, nullptr).message(),
            "this client's waiting items hold 0 bytes and this one has 101; together they may hold 100");
  Submit(*engine, Document(1), {}, 100);
  gate.WaitForArrival();
  Submit(*engine, Document(2), {}, 60);
  EXPECT_EQ(engine->Classify({.context = {}, .item = Document(3), .bytes = 41}, nullptr).message(),
            "this client's waiting items hold 60 bytes and this one has 41; together they may hold 100");
  Submit(*engine, Document(3), {}, 40);
  EXPECT_EQ(engine->state().waiting_bytes, 100);
  {
    std::lock_guard lock(record_->mutex);
    EXPECT_EQ(record_->state.waiting_bytes, 100);
    EXPECT_EQ(record_->state.waiting_items, 2);
  }
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
}

// Held here by another queue, which ends later.
TEST_F(DynamicBatchingEngineTest, ClassifiersShareTheBytesOfTheirWaitingItems) {
  Gate gate;
  HoldBatches(gate);
  const std::shared_ptr<ClientBudgets> budgets = WaitingByteBudgets(200);
  auto other = std::make_unique<Budget::Share>(budgets->all());
  other->Add(180);
  const auto engine = MakeEngine({.items = {.waiting_bytes = budgets}});
  Submit(*engine, Document(1), {}, 5);
  gate.WaitForArrival();
  Submit(*engine, Document(2), {}, 10);
  EXPECT_EQ(engine->Classify({.context = {}, .item = Document(3), .bytes = 1}, nullptr).code(),
            absl::StatusCode::kResourceExhausted);
  other = nullptr;
  EXPECT_EQ(budgets->all()->held(), 10) << "what was refused holds nothing";
  Submit(*engine, Document(3), {}, 90);
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(budgets->all()->held(), 0);
}

TEST_F(DynamicBatchingEngineTest, AnItemThatCannotBePreparedFailsAlone) {
  const auto engine = MakeEngine();
  const auto broken = Submit(
      *engine, []() -> absl::StatusOr<models::ClassifierItem> { return absl::InvalidArgumentError("not an image"); });
  const auto thrown =
      Submit(*engine, []() -> absl::StatusOr<models::ClassifierItem> { throw std::runtime_error("unforeseen"); });
  const auto starved = Submit(*engine, []() -> absl::StatusOr<models::ClassifierItem> { throw std::bad_alloc(); });
  const auto good = Submit(*engine, [] { return Document(1); });
  EXPECT_TRUE(good->end.Wait() && good->scores.ok());
  EXPECT_TRUE(broken->end.Wait());
  EXPECT_EQ(broken->scores.status(), absl::InvalidArgumentError("not an image"));
  EXPECT_TRUE(thrown->end.Wait());
  EXPECT_EQ(thrown->scores.status(), absl::InternalError("the item cannot be prepared: unforeseen"));
  EXPECT_EQ(CodeOf(*starved), absl::StatusCode::kResourceExhausted);
}

TEST_F(DynamicBatchingEngineTest, WhoHearsThatAnItemCannotBePreparedMaySendTheNextAtOnce) {
  const auto engine = MakeEngine({.items = {.limits = {.max_queued_per_client = 1}}});
  const auto broken = std::make_shared<Listener>(), next = std::make_shared<Listener>();
  broken->on_finished = [&] {
    EXPECT_EQ(engine->Classify({.context = {}, .item = Document(1), .bytes = 1}, next), absl::OkStatus());
  };
  const ItemPreparation fails = []() -> absl::StatusOr<models::ClassifierItem> {
    return absl::InvalidArgumentError("no");
  };
  ASSERT_TRUE(engine->Classify({.context = {}, .item = fails, .bytes = 1}, broken).ok());
  EXPECT_EQ(CodeOf(*broken), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(*next), absl::StatusCode::kOk);
}

// The engine ends only when its listeners have heard.
TEST_F(DynamicBatchingEngineTest, DrainsUntilWhoSentWhatCannotBePreparedHasHeard) {
  const auto engine = MakeEngine();
  Gate gate;
  const auto broken = std::make_shared<Listener>();
  std::atomic<bool> heard = false;
  broken->on_finished = [&] {
    gate.Pass();
    heard = true;
  };
  const ItemPreparation fails = []() -> absl::StatusOr<models::ClassifierItem> {
    return absl::InvalidArgumentError("no");
  };
  ASSERT_TRUE(engine->Classify({.context = {}, .item = fails, .bytes = 1}, broken).ok());
  gate.WaitForArrival();
  std::thread opener([&] {
    absl::SleepFor(absl::Milliseconds(5));
    gate.Open();
  });
  engine->Drain(absl::InfinitePast());
  EXPECT_TRUE(heard);
  opener.join();
}

// One runs, 2 * max_batch_size are ready for it, and the other 95 stay as they came.
TEST_F(DynamicBatchingEngineTest, PreparesOnlyTwoBatchesAhead) {
  Gate gate;
  HoldBatches(gate);
  std::atomic<int> prepared = 0;
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}});
  Submit(*engine, Document(1));
  gate.WaitForArrival();
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 99; ++i) {
    listeners.push_back(Submit(*engine, [&prepared] {
      ++prepared;
      return Document(1);
    }));
  }
  while (prepared < 4) std::this_thread::yield();
  absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(prepared, 4);
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(prepared, 99);
  for (const auto& listener : listeners) EXPECT_TRUE(listener->scores.ok());
}

// One thread prepares. While it holds the first of a call of three images of 4 s each, another call comes with one of
// 1 ms: it is next.
TEST_F(DynamicBatchingEngineTest, ACallThatAsksForLittleIsPreparedBeforeTheRestOfOneThatAsksForMuch) {
  Gate gate;
  const auto engine = MakeEngine({}, *FairPool::Create(1));
  std::vector<int> order;  // by the only thread
  const auto prepare = [&](int name) {
    return [&, name]() -> absl::StatusOr<models::ClassifierItem> {
      gate.Pass();
      order.push_back(name);
      return Document(1);
    };
  };
  const auto submit = [&](int name, absl::Duration work) {
    EXPECT_TRUE(engine
                    ->Classify({.context = {}, .item = prepare(name), .bytes = 1, .work_until_prepared = work},
                               std::make_shared<Listener>())
                    .ok());
  };
  for (int i = 1; i <= 3; ++i) submit(i, i * absl::Seconds(4));
  gate.WaitForArrival();
  submit(10, absl::Milliseconds(1));
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(order, ElementsAre(1, 10, 2, 3));
}

// What one client's images took, though none could be decoded, is its own: the other client's come first until they
// have taken as long.
TEST_F(DynamicBatchingEngineTest, ClientsShareTheTimeThatPreparingTakes) {
  Gate gate;
  const auto engine = MakeEngine({}, *FairPool::Create(1));
  std::string order;  // by the only thread
  const auto submit = [&](const std::string& client, absl::Duration takes) {
    RequestContext context;
    context.client = client;
    return Submit(
        *engine,
        [&, client, takes]() -> absl::StatusOr<models::ClassifierItem> {
          gate.Pass();
          clock_.Advance(takes);
          order += client;
          return absl::InvalidArgumentError("broken");
        },
        context);
  };
  submit("a", absl::Seconds(3));
  gate.WaitForArrival();
  for (int i = 0; i < 2; ++i) submit("a", absl::Seconds(3));
  for (int i = 0; i < 5; ++i) submit("b", absl::Seconds(1));
  gate.Open();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(order, "abbbabba");
}

// Two models share one thread: the one that has used it longer waits.
TEST_F(DynamicBatchingEngineTest, ModelsShareTheTimeOfTheThreadsThatPrepare) {
  Gate gate;
  const std::shared_ptr<FairPool> pool = *FairPool::Create(1);
  const auto large = MakeEngine({}, pool), small = MakeEngine({}, pool);
  std::string order;  // by the only thread
  const auto submit = [&](DynamicBatchingEngine& engine, char name, absl::Duration takes) {
    Submit(engine, [&, name, takes] {
      gate.Pass();
      clock_.Advance(takes);
      order += name;
      return Document(1);
    });
  };
  submit(*large, 'L', absl::Seconds(3));
  gate.WaitForArrival();
  for (int i = 0; i < 2; ++i) submit(*large, 'L', absl::Seconds(3));
  for (int i = 0; i < 5; ++i) submit(*small, 's', absl::Seconds(1));
  gate.Open();
  large->Drain(absl::InfiniteFuture());
  small->Drain(absl::InfiniteFuture());
  EXPECT_EQ(order, "LsssLssL");
}

TEST_F(DynamicBatchingEngineTest, AbandonedItemsAreNeitherPreparedNorRun) {
  Gate gate;
  HoldBatches(gate);
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 1}}});
  Submit(*engine, Document(1));
  gate.WaitForArrival();
  RequestContext cancelled, late;
  late.deadline = clock_.Now() + absl::Seconds(1);
  const auto ready_cancelled = Submit(*engine, Document(2), cancelled);
  const auto ready_late = Submit(*engine, Document(3), late);
  std::atomic<int> prepared = 0;  // two are ready already: these stay unprepared
  const auto prepare = [&prepared] {
    ++prepared;
    return Document(4);
  };
  const auto unprepared_cancelled = Submit(*engine, prepare, cancelled);
  const auto unprepared_late = Submit(*engine, prepare, late);
  cancelled.cancelled->store(true);
  clock_.Advance(absl::Seconds(1));
  gate.Open();
  EXPECT_EQ(CodeOf(*ready_cancelled), absl::StatusCode::kCancelled);
  EXPECT_EQ(CodeOf(*ready_late), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(CodeOf(*unprepared_cancelled), absl::StatusCode::kCancelled);
  EXPECT_EQ(CodeOf(*unprepared_late), absl::StatusCode::kDeadlineExceeded);
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(BatchSizes(), ElementsAre(1));
  EXPECT_EQ(prepared, 0);
}

// First {a, b} run, while the second worker sleeps, because each may have one running. When they have ended, images of
// two sizes wait, one of each client, which waited long enough for others of their size; each worker takes one.
TEST_F(DynamicBatchingEngineTest, AWorkerWakesWhenWhatIsRunningWasAllThatItsClientsMayHave) {
  Gate first, others;
  std::atomic<int> batches = 0;
  on_batch = [&](absl::Span<const models::ClassifierItem* const>) {
    (++batches == 1 ? first : others).Pass();
    return absl::OkStatus();
  };
  DynamicBatchingEngine::Options options;
  options.workers = models::CpuWorkers(2);
  options.items.batches = {.max_batch_size = 2, .max_queue_delay = absl::Hours(1)};
  options.items.batches.order.max_running_per_client = 1;
  const auto engine = MakeEngine(options);
  RequestContext a, b;
  a.client = "a";
  b.client = "b";
  std::vector<std::shared_ptr<Listener>> items = {Submit(*engine, ImageOf(8, 8, 1), a),
                                                  Submit(*engine, ImageOf(8, 8, 2), b)};
  first.WaitForArrival();
  items.push_back(Submit(*engine, ImageOf(8, 8, 3), a));
  items.push_back(Submit(*engine, ImageOf(4, 4, 4), b));
  clock_.Advance(absl::Hours(1));
  first.Open();
  others.WaitForArrival(2);
  others.Open();
  for (const auto& item : items) EXPECT_EQ(CodeOf(*item), absl::StatusCode::kOk);
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(batches, 3);
}

// Submitted at 0 s, an item at 2 s, its batch from 5 s to 9 s.
TEST_F(DynamicBatchingEngineTest, ReportsWhereTheTimeWent) {
  Gate first_batch;
  std::atomic<int> batches = 0;
  on_batch = [&](absl::Span<const models::ClassifierItem* const>) {
    if (++batches == 1) {
      first_batch.Pass();
    } else {
      clock_.Advance(absl::Seconds(4));
    }
    return absl::OkStatus();
  };
  const auto engine = MakeEngine();
  Submit(*engine, Document(1));
  first_batch.WaitForArrival();
  EndSignal prepared;
  const auto listener = Submit(*engine, [&] {
    clock_.Advance(absl::Seconds(2));
    prepared.Notify();
    return Document(2);
  });
  ASSERT_TRUE(prepared.Wait());
  while (record_->mutex.lock(), record_->prepared.empty()) record_->mutex.unlock();
  record_->mutex.unlock();
  clock_.Advance(absl::Seconds(3));
  first_batch.Open();
  ASSERT_TRUE(listener->end.Wait());
  EXPECT_EQ(listener->scores->timings.preparation, absl::Seconds(2));
  EXPECT_EQ(listener->scores->timings.queue, absl::Seconds(3));
  EXPECT_EQ(listener->scores->timings.run, absl::Seconds(4));
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(record_->prepared, ElementsAre(absl::Seconds(2)));
  EXPECT_THAT(record_->queued, ElementsAre(absl::ZeroDuration(), absl::Seconds(3)));
  EXPECT_EQ(record_->batches.back().run, absl::Seconds(4));
  EXPECT_EQ(record_->batches.back().tokens, 1);
  EXPECT_EQ(record_->batches.back().multiply_adds, 7);
}

TEST_F(DynamicBatchingEngineTest, DrainFinishesWhatIsThereAndRefusesTheRest) {
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 1}}});
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 20; ++i) listeners.push_back(Submit(*engine, [] { return Document(1); }));
  engine->Drain(absl::InfiniteFuture());
  for (const auto& listener : listeners) EXPECT_TRUE(listener->end.ended() && listener->scores.ok());
  EXPECT_EQ(engine->Classify({.context = {}, .item = Document(1), .bytes = 0}, nullptr).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(DynamicBatchingEngineTest, DrainEndsAtItsDeadlineWhatIsNotRunning) {
  Gate batch, preparation;
  HoldBatches(batch);
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}});
  const auto running = Submit(*engine, Document(1));
  batch.WaitForArrival();
  const auto prepare = [&preparation] {
    preparation.Pass();
    return Document(2);
  };
  const auto ready = Submit(*engine, Document(2));
  const auto preparing = Submit(*engine, prepare), preparing_too = Submit(*engine, prepare);
  const auto unprepared = Submit(*engine, prepare);
  preparation.WaitForArrival(2);
  std::thread drain([&engine] { engine->Drain(absl::InfinitePast()); });
  const auto is_draining = [&engine] {
    return absl::IsUnavailable(
        engine->Classify({.context = {}, .item = Document(1), .bytes = 0}, std::make_shared<Listener>()));
  };
  while (!is_draining()) std::this_thread::yield();
  preparation.Open();
  batch.Open();
  drain.join();
  EXPECT_EQ(CodeOf(*running), absl::StatusCode::kOk);
  for (const auto& left : {ready, preparing, preparing_too, unprepared}) {
    EXPECT_EQ(CodeOf(*left), absl::StatusCode::kUnavailable);
  }
}

TEST_F(DynamicBatchingEngineTest, AnEarlierDeadlineOvertakesADrainThatWaits) {
  Gate gate;
  HoldBatches(gate);
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 1}}});
  Submit(*engine, Document(1));
  const auto waiting = Submit(*engine, Document(2));
  gate.WaitForArrival();
  std::thread patient([&engine] { engine->Drain(absl::InfiniteFuture()); });
  std::thread hasty([&engine] { engine->Drain(absl::InfinitePast()); });
  absl::SleepFor(absl::Milliseconds(2));
  gate.Open();
  patient.join();
  hasty.join();
  EXPECT_TRUE(waiting->end.ended());
}

TEST_F(DynamicBatchingEngineTest, ItsDestructorEndsWhatIsLeft) {
  std::vector<std::shared_ptr<Listener>> listeners;
  {
    const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 1}}});
    for (int i = 0; i < 50; ++i) listeners.push_back(Submit(*engine, [] { return Document(1); }));
  }
  for (const auto& listener : listeners) EXPECT_TRUE(listener->end.ended());
}

TEST_F(DynamicBatchingEngineTest, RefusesOptionsOutOfRange) {
  const auto create = [this](const DynamicBatchingEngine::Options& options) {
    return DynamicBatchingEngine::Create(WeightsOf(std::make_unique<FakeClassifier>()), *FairPool::Create(1), nullptr,
                                         clock_, options)
        .status();
  };
  EXPECT_EQ(create({.items = {.batches = {.max_batch_size = 0}}}),
            absl::InvalidArgumentError("max_batch_size is 0, must be at least 1"));
  EXPECT_EQ(create({.items = {.limits = {.max_queued = 0}}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.items = {.waiting_bytes = WaitingByteBudgets(0)}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(create({.items = {.batches = {.max_batch_tokens = 0}}}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace longshort::core::dynamic_batching_engine_test
