// A worker of a device that runs one batch while the next one is packed.
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/dynamic_batching_engine_fixture.h"

namespace longshort::core::batches_ahead_test {

using ::testing::ElementsAre;
using Listener = RecordingClassificationListener;

class BatchesAhead : public DynamicBatchingEngineFixture {
 protected:
  BatchesAhead() { at_once = 2; }

  // Holds the worker where it waits for the first batch, document 1's, until documents 2, 3, ... `last` wait.
  std::vector<std::shared_ptr<Listener>> SubmitWhileOneRuns(DynamicBatchingEngine& engine, int32_t last) {
    std::vector<std::shared_ptr<Listener>> listeners = {Submit(engine, Document(1))};
    gate_.WaitForArrival();
    for (int32_t id = 2; id <= last; ++id) listeners.push_back(Submit(engine, Document(id)));
    gate_.Open();
    return listeners;
  }
  static void ExpectLogits(std::vector<std::shared_ptr<Listener>>& listeners) {
    for (size_t i = 0; i < listeners.size(); ++i) {
      ASSERT_TRUE(listeners[i]->end.Wait());
      ASSERT_TRUE(listeners[i]->scores.ok()) << listeners[i]->scores.status();
      EXPECT_EQ(listeners[i]->scores->row, FakeClassifier::LogitsOf(Document(static_cast<int32_t>(i) + 1)));
    }
  }
  // Keeps the order of the worker's calls.
  void RecordCalls() {
    on_batch = [this](absl::Span<const models::ClassifierItem* const> items) {
      calls_.push_back(absl::StrCat("begin ", items.size()));
      return absl::OkStatus();
    };
    on_finish = [this] {
      gate_.Pass();
      calls_.push_back("finish");
    };
  }

  Gate gate_;
  std::vector<std::string> calls_;  // of the only worker
};

TEST_F(BatchesAhead, TheNextFullBatchBeginsBeforeTheLastOneEnds) {
  RecordCalls();
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}});
  std::vector<std::shared_ptr<Listener>> listeners = SubmitWhileOneRuns(*engine, 6);
  engine->Drain(absl::InfiniteFuture());
  // Document 6 alone is no full batch: more items may come until the batch before it ends.
  EXPECT_THAT(calls_, ElementsAre("begin 1", "finish", "begin 2", "begin 2", "finish", "finish", "begin 1", "finish"));
  ExpectLogits(listeners);
}

TEST_F(BatchesAhead, ABatchRunsFromTheEndOfTheOneBefore) {
  on_finish = [this] {
    gate_.Pass();
    clock_.Advance(absl::Seconds(1));
  };
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}});
  std::vector<std::shared_ptr<Listener>> listeners = SubmitWhileOneRuns(*engine, 5);
  engine->Drain(absl::InfiniteFuture());
  ASSERT_EQ(record_->batches.size(), 3u);
  for (const BatchReport& batch : record_->batches) EXPECT_EQ(batch.run, absl::Seconds(1));
  EXPECT_EQ(listeners[4]->scores->timings.queue, absl::Seconds(2)) << "of the batches with documents 1, and 2 and 3";
}

TEST_F(BatchesAhead, AnErrorFailsItsBatchOnly) {
  RecordCalls();
  int batches = 0;
  on_batch = [&](absl::Span<const models::ClassifierItem* const>) {
    return ++batches == 2 ? absl::InternalError("once") : absl::OkStatus();
  };
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}});
  std::vector<std::shared_ptr<Listener>> listeners = SubmitWhileOneRuns(*engine, 5);
  ExpectLogits(listeners);
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(record_->failures, ElementsAre(absl::InternalError("the model's batch failed: once")));
  EXPECT_THAT(BatchSizes(), ElementsAre(1, 2, 2, 1, 1)) << "documents 2 and 3 run again, each alone";
}

TEST_F(BatchesAhead, AModelThatIsDiscardedReturnsTheItemsOfTheNextBatch) {
  std::atomic<int> finished = 0;
  on_finish = [&] {
    gate_.Pass();
    if (++finished == 2) throw std::runtime_error("out of order");
  };
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}});
  std::vector<std::shared_ptr<Listener>> listeners = SubmitWhileOneRuns(*engine, 5);
  ExpectLogits(listeners);
  engine->Drain(absl::InfiniteFuture());
  EXPECT_THAT(record_->failures, ElementsAre(absl::InternalError("the model's batch failed: out of order")));
  EXPECT_THAT(record_->rebuilt, ElementsAre(absl::OkStatus()));
  // Documents 2 and 3 failed and run alone; 4 and 5 did not.
  EXPECT_THAT(BatchSizes(), testing::UnorderedElementsAre(1, 2, 1, 1, 2));
}

TEST_F(BatchesAhead, AnItemThatIsCancelledBeforeItsBatchBeginsDoesNotRun) {
  RecordCalls();
  const auto engine = MakeEngine({.items = {.batches = {.max_batch_size = 2}}});
  RequestContext context;
  const auto first = Submit(*engine, Document(1));
  gate_.WaitForArrival();
  std::vector<std::shared_ptr<Listener>> others;
  for (int32_t id = 2; id <= 5; ++id)
    others.push_back(Submit(*engine, Document(id), id == 4 ? context : RequestContext()));
  context.cancelled->store(true);
  gate_.Open();
  engine->Drain(absl::InfiniteFuture());
  EXPECT_EQ(CodeOf(*others[2]), absl::StatusCode::kCancelled);
  EXPECT_THAT(calls_, ElementsAre("begin 1", "finish", "begin 2", "finish", "begin 1", "finish"));
}

}  // namespace longshort::core::batches_ahead_test
