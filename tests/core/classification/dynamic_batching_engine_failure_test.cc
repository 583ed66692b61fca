// What becomes of items and workers when the model fails; run under the thread sanitizer too.
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/dynamic_batching_engine_fixture.h"

namespace longshort::core::dynamic_batching_engine_failure_test {

using ::testing::ElementsAre;
using Listener = RecordingClassificationListener;

class DynamicBatchingEngineFailure : public DynamicBatchingEngineFixture {
 protected:
  // Documents 2, 3 and 4, which are one batch: they come while document 1 is held at the gate.
  static std::vector<std::shared_ptr<Listener>> SubmitTogether(DynamicBatchingEngine& engine, Gate& gate) {
    Submit(engine, Document(1));
    gate.WaitForArrival();
    std::vector<std::shared_ptr<Listener>> together;
    for (int32_t id = 2; id < 5; ++id) together.push_back(Submit(engine, Document(id)));
    gate.Open();
    return together;
  }
};

TEST_F(DynamicBatchingEngineFailure, ItemsOfABatchThatFailsAreTriedAgainEachAlone) {
  Gate gate;
  bool failed = false;
  on_batch = [&](absl::Span<const models::ClassifierItem* const> items) {
    gate.Pass();
    return items.size() > 1 && !std::exchange(failed, true) ? absl::InternalError("once") : absl::OkStatus();
  };
  const auto engine = MakeEngine();
  const std::vector<std::shared_ptr<Listener>> together = SubmitTogether(*engine, gate);
  for (int32_t id = 2; id < 5; ++id) {
    ASSERT_TRUE(together[id - 2]->end.Wait());
    ASSERT_TRUE(together[id - 2]->scores.ok()) << together[id - 2]->scores.status();
    EXPECT_EQ(together[id - 2]->scores->row, FakeClassifier::LogitsOf(Document(id)));
  }
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(BatchSizes(), ElementsAre(1, 3, 1, 1, 1));
  EXPECT_THAT(record_->failures, ElementsAre(absl::InternalError("the model's batch failed: once")));
}

TEST_F(DynamicBatchingEngineFailure, AnItemThatFailsThreeTimesIsEndedAndItsNeighboursAreNot) {
  Gate gate;
  on_batch = [&gate](absl::Span<const models::ClassifierItem* const> items) {
    gate.Pass();
    for (const models::ClassifierItem* item : items) {
      if (FakeClassifier::LogitsOf(*item).front() == 3) return absl::InvalidArgumentError("an item is odd");
    }
    return absl::OkStatus();
  };
  const auto engine = MakeEngine();
  const std::vector<std::shared_ptr<Listener>> together = SubmitTogether(*engine, gate);
  for (int32_t id = 2; id < 5; ++id) {
    ASSERT_TRUE(together[id - 2]->end.Wait());
    EXPECT_EQ(together[id - 2]->scores.status(),
              id == 3 ? absl::InternalError("the model's batch failed: an item is odd") : absl::OkStatus());
  }
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(record_->failures.size(), 3u);
  EXPECT_EQ(engine->state().waiting_items, 0);
  EXPECT_EQ(engine->state().waiting_bytes, 0);
}

// Models of LibTorch catch what it throws, and fail.
TEST_F(DynamicBatchingEngineFailure, AWorkerWhoseModelThrowsOrFailsTwiceInARowGetsAnotherOne) {
  for (const bool throws : {true, false}) {
    int batch = 0, replicas = 0;
    on_batch = [&](absl::Span<const models::ClassifierItem* const>) -> absl::Status {
      ++batch;
      if (throws && batch == 1) throw std::runtime_error("out of order");
      return !throws && batch <= 2 ? absl::InternalError("out of order") : absl::OkStatus();
    };
    on_replicate = [&replicas] {
      ++replicas;
      return absl::OkStatus();
    };
    record_->rebuilt.clear();
    const auto engine = MakeEngine();
    EXPECT_EQ(CodeOf(*Submit(*engine, Document(2))), absl::StatusCode::kOk);
    engine->Drain(absl::InfiniteFuture());
    EXPECT_EQ(replicas, 2);
    EXPECT_THAT(record_->rebuilt, ElementsAre(absl::OkStatus()));
  }
}

// Both workers are held in a batch at once; one of them throws and has no other model for a while.
TEST_F(DynamicBatchingEngineFailure, WithSeveralWorkersTheOthersTakeOverWhatOneFailedAt) {
  Gate gate;
  std::atomic<int> batches = 0, replicas = 0;
  on_batch = [&](absl::Span<const models::ClassifierItem* const>) -> absl::Status {
    const bool throws = ++batches == 1;
    gate.Pass();
    if (throws) throw std::runtime_error("out of order");
    return absl::OkStatus();
  };
  on_replicate = [&replicas] { return ++replicas == 3 ? absl::ResourceExhaustedError("later") : absl::OkStatus(); };
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 1}}, .workers = models::CpuWorkers(2)});
  std::vector<std::shared_ptr<Listener>> items;
  for (int32_t id = 1; id < 9; ++id) items.push_back(Submit(*engine, Document(id)));
  gate.WaitForArrival(2);
  gate.Open();
  for (int32_t id = 1; id < 9; ++id) {
    ASSERT_TRUE(items[id - 1]->end.Wait());
    ASSERT_TRUE(items[id - 1]->scores.ok()) << items[id - 1]->scores.status();
    EXPECT_EQ(items[id - 1]->scores->row, FakeClassifier::LogitsOf(Document(id)));
  }
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(record_->rebuilt, ElementsAre(absl::ResourceExhaustedError("later")));
}

// It fails fast, and so would be free before the other for each try of an item.
TEST_F(DynamicBatchingEngineFailure, AWorkerThatKeepsFailingLosesNoAnswer) {
  for (const bool throws : {false, true}) {
    std::mutex mutex;
    std::thread::id bad;
    std::atomic<int> replicas = 0;
    on_batch = [&](absl::Span<const models::ClassifierItem* const>) -> absl::Status {
      bool is_bad = false;
      {
        std::lock_guard lock(mutex);
        if (bad == std::thread::id()) bad = std::this_thread::get_id();
        is_bad = bad == std::this_thread::get_id();
      }
      if (is_bad && throws) throw std::runtime_error("out of order");
      if (is_bad) return absl::InternalError("out of order");
      absl::SleepFor(absl::Milliseconds(2));
      return absl::OkStatus();
    };
    on_replicate = [&replicas] {
      ++replicas;
      return absl::OkStatus();
    };
    const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}, .workers = models::CpuWorkers(2)});
    std::vector<std::shared_ptr<Listener>> items;
    for (int32_t id = 1; id <= 50; ++id) items.push_back(Submit(*engine, Document(id)));
    for (const auto& item : items) EXPECT_EQ(CodeOf(*item), absl::StatusCode::kOk);
    engine->Drain(absl::InfiniteFuture());
    EXPECT_EQ(replicas, 3) << "the second one did no better, and the clock stands still";
  }
}

// The other one has nothing to do, but stays as long as there may be something.
TEST_F(DynamicBatchingEngineFailure, WhileDrainingAnotherWorkerTakesOverWhatOneCannotEnd) {
  Gate gate;
  std::atomic<int> batches = 0, replicas = 0;
  on_batch = [&](absl::Span<const models::ClassifierItem* const>) -> absl::Status {
    if (++batches > 1) return absl::OkStatus();
    gate.Pass();
    throw std::runtime_error("out of order");
  };
  on_replicate = [&replicas] { return ++replicas > 2 ? absl::ResourceExhaustedError("never") : absl::OkStatus(); };
  const auto engine = MakeEngine({.workers = models::CpuWorkers(2)});
  const auto item = Submit(*engine, Document(1));
  gate.WaitForArrival();
  std::thread drain([&] { engine->Drain(clock_.Now() + absl::Seconds(10)); });
  WaitUntilItDrains(*engine);
  gate.Open();
  drain.join();
  EXPECT_EQ(CodeOf(*item), absl::StatusCode::kOk);
}

TEST_F(DynamicBatchingEngineFailure, WhileDrainingAnItemThatFailsEverywhereIsEnded) {
  Gate gate;
  on_batch = [&gate](absl::Span<const models::ClassifierItem* const>) {
    gate.Pass();
    return absl::InternalError("out of order");
  };
  const auto engine = MakeEngine({.workers = models::CpuWorkers(2)});
  const auto item = Submit(*engine, Document(1));
  gate.WaitForArrival();
  std::thread drain([&engine] { engine->Drain(absl::InfiniteFuture()); });
  WaitUntilItDrains(*engine);
  gate.Open();
  drain.join();
  EXPECT_EQ(CodeOf(*item), absl::StatusCode::kInternal);
}

TEST_F(DynamicBatchingEngineFailure, WithoutAnyModelItemsEndWithTheEngine) {
  on_batch = [](absl::Span<const models::ClassifierItem* const>) -> absl::Status {
    throw std::runtime_error("out of order");
  };
  int replicas = 0;
  on_replicate = [&replicas] { return ++replicas > 1 ? absl::ResourceExhaustedError("never") : absl::OkStatus(); };
  const auto engine = MakeEngine();
  const auto item = Submit(*engine, Document(1));
  const auto failures = [this] {
    std::lock_guard lock(record_->mutex);
    return record_->failures.size();
  };
  while (failures() == 0 || engine->state().waiting_items == 0) absl::SleepFor(absl::Milliseconds(1));
  {
    std::lock_guard lock(record_->mutex);
    EXPECT_EQ(record_->state.waiting_items, 1) << "it waits for a model";
  }
  engine->Drain(clock_.Now());
  EXPECT_EQ(CodeOf(*item), absl::StatusCode::kUnavailable);
}

TEST_F(DynamicBatchingEngineFailure, LogitsThatAreNotFiniteFailTheirItemOnly) {
  Gate gate;
  HoldBatches(gate);
  on_logits = [](std::vector<float>& logits) {
    if (logits.size() > 3) logits[4] = std::numeric_limits<float>::quiet_NaN();
  };
  const auto engine = MakeEngine();
  Submit(*engine, Document(1));
  gate.WaitForArrival();
  const auto first = Submit(*engine, Document(2)), second = Submit(*engine, Document(3));
  gate.Open();
  EXPECT_EQ(CodeOf(*first), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(*second), absl::StatusCode::kInternal);
}

TEST_F(DynamicBatchingEngineFailure, LogitsOfAnotherSizeFailTheBatch) {
  on_logits = [](std::vector<float>& logits) { logits.pop_back(); };
  const auto engine = MakeEngine();
  EXPECT_EQ(CodeOf(*Submit(*engine, Document(1))), absl::StatusCode::kInternal);
}

}  // namespace longshort::core::dynamic_batching_engine_failure_test
