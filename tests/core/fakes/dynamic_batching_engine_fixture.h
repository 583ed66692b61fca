// An engine of a classifier over a fake model that does as the test says.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/classification/dynamic_batching_engine.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/gate.h"
#include "tests/core/fakes/weights_of.h"

namespace longshort::core {

class DynamicBatchingEngineFixture : public testing::Test {
 protected:
  // Whatever an engine went through, it has reported to its observer that no item waits.
  void TearDown() override {
    EXPECT_EQ(record_->state.waiting_items, 0);
    EXPECT_EQ(record_->state.waiting_bytes, 0);
  }

  std::unique_ptr<DynamicBatchingEngine> MakeEngine(const DynamicBatchingEngine::Options& options = {},
                                                    std::shared_ptr<FairPool> pool = *FairPool::Create(2)) {
    auto classifier = std::make_unique<FakeClassifier>();
    classifier->on_batch = on_batch;
    classifier->on_logits = on_logits;
    classifier->on_rest = on_rest;
    classifier->on_finish = on_finish;
    classifier->at_once = at_once;
    classifier->on_replicate = on_replicate;
    auto engine =
        DynamicBatchingEngine::Create(WeightsOf(std::move(classifier)), std::move(pool),
                                      std::make_unique<RecordingClassificationObserver>(record_), clock_, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }

  // Holds every batch at the gate until it is open.
  void HoldBatches(Gate& gate) {
    on_batch = [&gate](absl::Span<const models::ClassifierItem* const>) {
      gate.Pass();
      return absl::OkStatus();
    };
  }

  static std::shared_ptr<RecordingClassificationListener> Submit(
      DynamicBatchingEngine& engine, std::variant<models::ClassifierItem, ItemPreparation> item,
      RequestContext context = {}, int64_t bytes = 1) {
    auto listener = std::make_shared<RecordingClassificationListener>();
    const absl::Status status =
        engine.Classify({.context = std::move(context), .item = std::move(item), .bytes = bytes}, listener);
    EXPECT_TRUE(status.ok()) << status;
    return listener;
  }

  // Returns once the engine refuses items: its drain has begun. The items that it takes until then end at once.
  static void WaitUntilItDrains(DynamicBatchingEngine& engine) {
    RequestContext cancelled;
    cancelled.cancelled->store(true);
    const ItemPreparation item = [] { return absl::StatusOr<models::ClassifierItem>(absl::CancelledError()); };
    while (!absl::IsUnavailable(
        engine.Classify({.context = cancelled, .item = item}, std::make_shared<RecordingClassificationListener>()))) {
      std::this_thread::yield();
    }
  }

  static absl::StatusCode CodeOf(RecordingClassificationListener& listener) {
    EXPECT_TRUE(listener.end.Wait());
    return listener.scores.status().code();
  }

  // Of the batches that ran. The engine must be drained.
  std::vector<int64_t> BatchSizes() const {
    std::vector<int64_t> sizes;
    for (const BatchReport& batch : record_->batches) sizes.push_back(batch.items);
    return sizes;
  }

  std::function<absl::Status(absl::Span<const models::ClassifierItem* const>)> on_batch;
  std::function<void(std::vector<float>&)> on_logits;
  std::function<void()> on_rest, on_finish;
  int64_t at_once = 1;
  std::function<absl::Status()> on_replicate;
  FakeClock clock_;
  const std::shared_ptr<RecordingClassificationObserver::Record> record_ =
      std::make_shared<RecordingClassificationObserver::Record>();
};

}  // namespace longshort::core
