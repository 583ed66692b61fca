#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "absl/time/clock.h"
#include "server/monitoring/tracer.h"

namespace longshort::server::trace_queue_test {

std::unique_ptr<CallTrace> Trace(int64_t spans) {
  auto trace = std::make_unique<CallTrace>();
  trace->stages.resize(spans - 1);
  return trace;
}

TEST(TraceQueue, DropsWhatHasNoRoom) {
  TraceQueue queue({.max_spans = 10, .batch_spans = 10, .delay = absl::ZeroDuration()});
  EXPECT_TRUE(queue.Offer(Trace(6)));
  EXPECT_FALSE(queue.Offer(Trace(5)));
  EXPECT_TRUE(queue.Offer(Trace(4)));
  EXPECT_FALSE(queue.Offer(Trace(1)));
  EXPECT_EQ(queue.Take().size(), 2);
  EXPECT_TRUE(queue.Offer(Trace(10)));
}

TEST(TraceQueue, DropsWhatHasNoMemoryUntilABatchWasExported) {
  const auto memory = TraceBudget(Trace(1)->Bytes() + 1000);
  TraceQueue queue({.max_spans = 100, .batch_spans = 100, .delay = absl::ZeroDuration()}, memory);
  auto large = Trace(1);
  large->attributes.push_back({"url.path", std::string(400, 'x')});
  EXPECT_GE(large->Bytes(), Trace(1)->Bytes() + 800);
  EXPECT_TRUE(queue.Offer(std::move(large)));
  EXPECT_FALSE(queue.Offer(Trace(1)));
  auto batch = queue.Take();
  EXPECT_EQ(batch.size(), 1);
  EXPECT_FALSE(queue.Offer(Trace(1)));
  batch.clear();
  EXPECT_EQ(memory->held(), 0);
  EXPECT_TRUE(queue.Offer(Trace(1)));
}

TEST(TraceQueue, CountsAStateOnceForItselfAndOnceForEachSpan) {
  const auto with_state = Trace(10);
  with_state->context.state = std::string(400, 's');
  EXPECT_GE(with_state->Bytes(), Trace(10)->Bytes() + 11 * 400);
}

TEST(TraceQueue, GivesABatchAtATimeAndCallsWhole) {
  TraceQueue queue({.max_spans = 100, .batch_spans = 5, .delay = absl::ZeroDuration()});
  for (const int64_t spans : {3, 2, 1, 7, 4}) ASSERT_TRUE(queue.Offer(Trace(spans)));
  EXPECT_EQ(queue.Take().size(), 2);
  EXPECT_EQ(queue.Take().size(), 1);
  EXPECT_EQ(queue.Take().size(), 1);  // more than a batch by itself
  EXPECT_EQ(queue.Take().size(), 1);
}

TEST(TraceQueue, WaitsForABatchToBeFull) {
  TraceQueue queue({.max_spans = 100, .batch_spans = 3, .delay = absl::Hours(1)});
  std::thread offering([&] {
    for (int i = 0; i < 3; ++i) queue.Offer(Trace(1));
  });
  EXPECT_EQ(queue.Take().size(), 3);
  offering.join();
}

TEST(TraceQueue, WaitsNoLongerThanTheDelay) {
  TraceQueue queue({.max_spans = 100, .batch_spans = 3, .delay = absl::Milliseconds(20)});
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(queue.Offer(Trace(1)));
  EXPECT_EQ(queue.Take().size(), 1);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(20));
}

TEST(TraceQueue, GivesQueuedSpansOnceClosedAndThenNothing) {
  TraceQueue queue({.max_spans = 100, .batch_spans = 50, .delay = absl::Hours(1)});
  ASSERT_TRUE(queue.Offer(Trace(1)));
  queue.Close();
  EXPECT_FALSE(queue.Offer(Trace(1)));
  EXPECT_EQ(queue.Take().size(), 1);
  EXPECT_TRUE(queue.Take().empty());
  EXPECT_TRUE(queue.Take().empty());
}

TEST(TraceQueue, ClosingWakesAWaitingReader) {
  TraceQueue queue({.max_spans = 100, .batch_spans = 50, .delay = absl::Hours(1)});
  std::thread closing([&] { queue.Close(); });
  EXPECT_TRUE(queue.Take().empty());
  closing.join();
}

}  // namespace longshort::server::trace_queue_test
