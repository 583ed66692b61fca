#include "core/classification/item_queue.h"

#include <string>
#include <utility>

#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_classifier.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort::core::item_queue_test {

class ItemQueueTest : public testing::Test {
 protected:
  absl::Status Admit(ItemQueue& items, std::variant<models::ClassifierItem, ItemPreparation> item,
                     RequestContext context = {}, absl::Duration preparation_work = {}) {
    ClassificationRequest request{
        .context = std::move(context), .item = std::move(item), .bytes = 10, .preparation_work = preparation_work};
    return items.Admit(std::make_unique<ClassificationJob>(std::move(request), nullptr, clock_.Now()), clock_.Now());
  }

  // Teaches it that a document takes a worker 1 ms a token.
  void Teach(ItemQueue& items) {
    ASSERT_TRUE(Admit(items, Document(1, 100)).ok());
    const BatchFormer::Batch batch = items.TakeBatch(clock_.Now());
    items.Complete(0, batch.jobs, absl::Milliseconds(100), clock_.Now());
  }

  // The next to be prepared, as a thread of the pool takes it; null if there is none.
  static std::unique_ptr<ClassificationJob> BeginPreparation(ItemQueue& items) {
    return items.ReservePreparations() > 0 || items.unprepared() > 0 ? items.BeginPreparation() : nullptr;
  }

  FakeClock clock_;
  const ItemPreparation preparation_ = [] { return Document(1); };
};

TEST_F(ItemQueueTest, AClientThatTakesAllTheBytesItCanLeavesRoomForOthers) {
  ItemQueue items({.waiting_bytes = WaitingByteBudgets(200)});
  const auto admit = [&](const char* client) {
    RequestContext context;
    context.client = client;
    return Admit(items, preparation_, context);
  };
  int64_t admitted = 0;
  while (admit("greedy").ok()) ++admitted;
  EXPECT_EQ(admitted, 10) << "of 10 bytes each";
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(admit("other").ok());
  EXPECT_EQ(admit("other").message(),
            "this client's waiting items hold 50 bytes and this one has 10; together they may hold 50");
  EXPECT_TRUE(admit("third").ok());
  while (BeginPreparation(items) != nullptr) {
  }
}

TEST_F(ItemQueueTest, WhatIsUrgentIsPreparedFirst) {
  ItemQueue items({});
  for (const char* id : {"a", "b", "c"}) {
    RequestContext context;
    context.id = id;
    if (context.id == "b") context.priority = Priority::kHigh;
    if (context.id == "c") context.deadline = clock_.Now() + absl::Seconds(1);
    ASSERT_TRUE(Admit(items, preparation_, context).ok());
  }
  std::string order;
  while (const auto job = BeginPreparation(items)) order += job->context().id;
  EXPECT_EQ(order, "bca");
}

TEST_F(ItemQueueTest, AWorkerOnProbationTakesNoBatchAhead) {
  ItemQueue items({.batches = {.max_batch_size = 2}}, models::CpuWorkers(2));
  ASSERT_TRUE(Admit(items, Document(1)).ok());
  EXPECT_FALSE(items.HasBatchAhead(0)) << "an item is no full batch";
  ASSERT_TRUE(Admit(items, Document(2)).ok());
  EXPECT_TRUE(items.HasBatchAhead(0));
  items.OnModelDiscarded(0);
  EXPECT_FALSE(items.HasBatchAhead(0));
  EXPECT_TRUE(items.HasBatchAhead(1));
}

// Threads divide their time, not their number of items, evenly between clients: also before an item has ended.
TEST_F(ItemQueueTest, ChargesAClientWithAPreparationWhenItBegins) {
  ItemQueue items({});
  for (const char* id : {"large1", "large2", "large3", "small1", "small2", "small3"}) {
    RequestContext context;
    context.id = id;
    context.client = context.id.substr(0, 5);
    const absl::Duration work = context.client == "large" ? absl::Seconds(1) : absl::Milliseconds(1);
    ASSERT_TRUE(Admit(items, preparation_, context, work).ok());
  }
  std::string order;
  while (const auto job = BeginPreparation(items)) order += job->context().id + " ";
  EXPECT_EQ(order, "large1 small1 small2 small3 large2 large3 ");
}

// A client of a high priority with large images does not take all threads, either.
TEST_F(ItemQueueTest, ChargesAPriorityWithAPreparationWhenItBegins) {
  ItemQueue items({});
  for (const char* id : {"high1", "high2", "low1"}) {
    RequestContext context;
    context.id = id;
    const bool high = context.id.starts_with("high");
    context.priority = high ? Priority::kHigh : Priority::kLow;
    ASSERT_TRUE(Admit(items, preparation_, context, high ? absl::Seconds(1) : absl::Milliseconds(1)).ok());
  }
  std::string order;
  while (const auto job = BeginPreparation(items)) order += job->context().id + " ";
  EXPECT_EQ(order, "high1 low1 high2 ");
}

TEST_F(ItemQueueTest, CountsAnItemUntilItIsInABatchOrHasEnded) {
  ItemQueue items({});
  ASSERT_TRUE(Admit(items, preparation_).ok());
  ASSERT_TRUE(Admit(items, preparation_).ok());
  auto first = BeginPreparation(items);
  const auto second = BeginPreparation(items);
  EXPECT_EQ(items.preparing(), 2);
  EXPECT_EQ(items.state().waiting_items, 2);
  EXPECT_EQ(first->Prepare(), absl::OkStatus());
  first->SetPrepared(clock_.Now());
  items.AddPrepared(std::move(first), absl::Seconds(1));
  items.RemoveUnprepared(*second, absl::Seconds(1));
  EXPECT_EQ(items.preparing(), 0);
  EXPECT_EQ(items.prepared(), 1);
  EXPECT_EQ(items.state().waiting_items, 1);
  EXPECT_EQ(items.state().waiting_bytes, 10);
  EXPECT_EQ(items.TakeBatch(clock_.Now()).jobs.size(), 1u);
  EXPECT_EQ(items.state().waiting_items, 0);
}

TEST_F(ItemQueueTest, RefusesWhatCannotMakeItsDeadlineUnlessTheWorkerIsIdle) {
  ItemQueue items({});
  Teach(items);
  RequestContext soon;
  soon.deadline = clock_.Now() + absl::Milliseconds(50);
  ASSERT_TRUE(Admit(items, Document(1, 100), soon).ok());
  EXPECT_EQ(Admit(items, Document(1, 100), soon),
            absl::DeadlineExceededError("the request needs at least 100ms, but its deadline is in 50ms"));
  EXPECT_TRUE(Admit(items, Document(1, 1), soon).ok()) << "nothing is known of documents as short as this";
}

TEST_F(ItemQueueTest, BoundsTheTimeThatWaitsPreparedOrNot) {
  ItemQueue items({.limits = {.max_queued_cost = absl::Milliseconds(250)}});
  Teach(items);
  ASSERT_TRUE(Admit(items, Document(1, 100)).ok());
  ASSERT_TRUE(Admit(items, preparation_).ok());  // taken to be like the others
  const absl::Status full = Admit(items, Document(1, 100));
  ASSERT_TRUE(GetRefusal(full).has_value()) << full;
  EXPECT_EQ(GetRefusal(full)->retry_after, absl::Milliseconds(200));
  EXPECT_EQ(GetRefusal(full)->queue_depth, 2);
}

TEST_F(ItemQueueTest, ACallThatComesWhileNothingWaitsIsTakenWhateverItTakes) {
  ItemQueue items({.limits = {.max_queued_cost = absl::Milliseconds(250)}});
  Teach(items);
  RequestContext context;
  for (int64_t i = 0; i < 20; ++i) {
    context.position_in_call = {.index = i, .count = 20};
    EXPECT_TRUE(Admit(items, Document(1, 100), context).ok()) << i;
  }
  context.position_in_call = {};
  EXPECT_FALSE(Admit(items, Document(1, 100), context).ok());
}

// No item is refused for its cost before one like it has run. From then on, items that were queued before count, too.
TEST_F(ItemQueueTest, BoundsTheTimeThatWaitsOnceItIsKnownWheneverItCame) {
  ItemQueue items({.limits = {.max_queued_cost = absl::Milliseconds(250)}, .batches = {.max_batch_size = 1}});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Admit(items, Document(1, 100)).ok());
  BatchFormer::Batch batch = items.TakeBatch(clock_.Now());
  items.Complete(0, batch.jobs, absl::Milliseconds(100), clock_.Now());
  const absl::Status full = Admit(items, Document(1, 100));
  ASSERT_TRUE(GetRefusal(full).has_value()) << full;
  EXPECT_EQ(GetRefusal(full)->retry_after, absl::Milliseconds(500));
  // They are charged exactly their cost.
  while (!(batch = items.TakeBatch(clock_.Now())).jobs.empty()) {
    items.Complete(0, batch.jobs, absl::Milliseconds(100), clock_.Now());
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Admit(items, Document(1, 100)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Admit(items, Document(1, 100))));
}

// The same for what is not prepared yet: it counts as what ran did.
TEST_F(ItemQueueTest, BoundsTheTimeThatWaitsToBePreparedOnceItIsKnown) {
  ItemQueue items({.limits = {.max_queued_cost = absl::Milliseconds(250)}});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Admit(items, preparation_).ok());
  const auto prepare_next = [&] {
    auto job = BeginPreparation(items);
    ASSERT_EQ(job->Prepare(), absl::OkStatus());
    job->SetPrepared(clock_.Now());
    items.AddPrepared(std::move(job), absl::Milliseconds(1));
  };
  prepare_next();
  items.Complete(0, items.TakeBatch(clock_.Now()).jobs, absl::Milliseconds(100), clock_.Now());
  prepare_next();
  const absl::Status full = Admit(items, preparation_);
  ASSERT_TRUE(GetRefusal(full).has_value()) << full;
  EXPECT_EQ(GetRefusal(full)->retry_after, absl::Milliseconds(500));
  EXPECT_EQ(GetRefusal(full)->queue_depth, 5);
  for (int i = 0; i < 4; ++i) prepare_next();
  EXPECT_EQ(items.TakeBatch(clock_.Now()).jobs.size(), 5u);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Admit(items, preparation_).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Admit(items, preparation_)));
}

// What one worker would need 400 ms for is taken after 200 ms by two.
TEST_F(ItemQueueTest, SeveralWorkersShareTheTimeThatWaits) {
  ItemQueue items({.limits = {.max_queued_cost = absl::Milliseconds(200)}}, models::CpuWorkers(2));
  Teach(items);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Admit(items, Document(1, 100)).ok());
  ASSERT_TRUE(Admit(items, preparation_).ok());
  const absl::Status full = Admit(items, Document(1, 100));
  ASSERT_TRUE(GetRefusal(full).has_value()) << full;
  EXPECT_EQ(GetRefusal(full)->retry_after, absl::Milliseconds(200));
}

// One batch of two runs, and the other worker sleeps.
TEST_F(ItemQueueTest, AWorkerThatIsIdleTakesWhatCannotMakeItsDeadlineWhileOthersRun) {
  ItemQueue items({}, models::CpuWorkers(2));
  Teach(items);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Admit(items, Document(1, 100)).ok());
  ASSERT_EQ(items.TakeBatch(clock_.Now()).jobs.size(), 2u);
  RequestContext soon;
  soon.deadline = clock_.Now() + absl::Milliseconds(50);
  ASSERT_TRUE(Admit(items, Document(1, 100), soon).ok());
  ASSERT_EQ(items.TakeBatch(clock_.Now()).jobs.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Admit(items, Document(1, 100), soon))) << "no worker is idle";
}

TEST_F(ItemQueueTest, BoundsTheTimeThatWaitsHoweverLongAgoItLearned) {
  ItemQueue items({.limits = {.max_queued_cost = absl::Milliseconds(250)}});
  Teach(items);
  clock_.Advance(absl::Hours(8));
  ASSERT_TRUE(Admit(items, Document(1, 100)).ok());
  ASSERT_TRUE(Admit(items, preparation_).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Admit(items, Document(1, 100))));
}

}  // namespace longshort::core::item_queue_test
