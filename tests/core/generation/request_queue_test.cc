#include "core/generation/request_queue.h"

#include <thread>

#include "core/requests/language_model_jobs.h"
#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/recording_listeners.h"

namespace longshort::core::request_queue_test {

using Decision = RequestQueue::Decision;

Decision Take(const Job&) { return Decision::kTake; }
Decision WaitToRead(const Job&) { return Decision::kWaitToRead; }
Decision SkipLong(const Job& job) { return job.context().id == "long" ? Decision::kSkip : Decision::kTake; }

std::unique_ptr<Job> TakeFirst(RequestQueue& queue, int worker = 0, bool fits = true) {
  return queue.TakeFirst({.worker = worker, .running = 0, .now = absl::UnixEpoch()},
                         [fits](const Job&) { return fits ? Decision::kTake : Decision::kWaitForRoom; });
}

class RequestQueueTest : public testing::Test {
 protected:
  std::unique_ptr<Job> JobWithId(const std::string& id, absl::Time deadline = absl::InfiniteFuture(),
                                 int64_t tokens = 2, const PositionInCall& position = {}) {
    ScoringRequest request;
    request.context.id = id;
    request.context.deadline = deadline;
    request.context.position_in_call = position;
    request.tokens.assign(tokens, 1);
    auto job = std::make_unique<ScoringJob>(std::move(request), listener_, 10, observer_);
    job->times.submitted = clock_.Now();
    return job;
  }

  // Teaches the queue what requests take: 1 ms a token.
  void Teach(RequestQueue& queue) {
    StepCost cost;
    for (int i = 0; i < 10; ++i) cost.Learn({.prefill = 100}, absl::Milliseconds(100));
    queue.SetSteps(0, cost, 1);
    ASSERT_TRUE(queue.Push(JobWithId("teacher", absl::InfiniteFuture(), 100)).ok());
    const std::unique_ptr<Job> job = TakeFirst(queue);
    job->steps.worker_time = {.prefill = absl::Milliseconds(100), .all = absl::Milliseconds(100)};
    job->times.prefilled = clock_.Now();
    queue.Complete(*job, clock_.Now());
  }

  FakeClock clock_;
  const std::shared_ptr<RecordingScoringListener> listener_ = std::make_shared<RecordingScoringListener>();
  RecordingObserver observer_;
};

TEST_F(RequestQueueTest, GivesBackFirstWhatCameFirst) {
  RequestQueue queue({.limits = {.max_queued = 3}});
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  ASSERT_TRUE(queue.Push(JobWithId("b")).ok());
  EXPECT_EQ(TakeFirst(queue)->context().id, "a");
  EXPECT_EQ(TakeFirst(queue)->context().id, "b");
  EXPECT_EQ(TakeFirst(queue), nullptr);
}

TEST_F(RequestQueueTest, RefusesWhatItHasNoRoomForAndSaysHowLongItIs) {
  RequestQueue queue({.limits = {.max_queued = 1}});
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  const absl::Status full = queue.Push(JobWithId("b"));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(), "the queue is full: 1 requests wait before this one, the limit is 1");
  EXPECT_EQ(GetRefusal(full)->queue_depth, 1);
  EXPECT_EQ(queue.size(), 1);
  EXPECT_FALSE(listener_->end.ended());  // who was refused never hears
}

TEST_F(RequestQueueTest, RefusesEverythingOnceClosedButKeepsWhatIsThere) {
  RequestQueue queue({.limits = {.max_queued = 2}});
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  queue.Close();
  EXPECT_EQ(queue.Push(JobWithId("b")).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(queue.closed());
  EXPECT_FALSE(queue.empty());
  EXPECT_NE(TakeFirst(queue), nullptr);
  EXPECT_TRUE(queue.empty());
}

TEST_F(RequestQueueTest, SeparatesAbandonedJobsAndKeepsTheRest) {
  RequestQueue queue({.limits = {.max_queued = 5}});
  auto cancelled = JobWithId("b");
  cancelled->context().cancelled->store(true);
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  ASSERT_TRUE(queue.Push(std::move(cancelled)).ok());
  ASSERT_TRUE(queue.Push(JobWithId("c", clock_.Now())).ok());
  ASSERT_TRUE(queue.Push(JobWithId("d", clock_.Now() + absl::Nanoseconds(1))).ok());
  const auto abandoned = queue.TakeAbandoned(clock_.Now());
  ASSERT_EQ(abandoned.size(), 2u);
  EXPECT_EQ(abandoned[0]->context().id, "b");
  EXPECT_EQ(abandoned[1]->context().id, "c");
  EXPECT_EQ(TakeFirst(queue)->context().id, "d");
  EXPECT_EQ(TakeFirst(queue)->context().id, "a");
}

TEST_F(RequestQueueTest, TakesInTheOrderOfPriorityClientAndDeadline) {
  RequestQueue queue({});
  const auto push = [&](const std::string& id, const std::string& client, Priority priority, absl::Duration deadline) {
    auto job = JobWithId(id, clock_.Now() + deadline);
    const_cast<RequestContext&>(job->context()).client = client;
    const_cast<RequestContext&>(job->context()).priority = priority;
    ASSERT_TRUE(queue.Push(std::move(job)).ok());
  };
  push("patient", "a", Priority::kNormal, absl::InfiniteDuration());  // due in a minute
  push("late", "a", Priority::kNormal, absl::Hours(1));               // due in a minute, too, and came later
  push("soon", "a", Priority::kNormal, absl::Seconds(1));
  push("low", "b", Priority::kLow, absl::Seconds(1));
  push("other", "b", Priority::kNormal, absl::Hours(1));
  push("high", "c", Priority::kHigh, absl::Hours(1));
  std::vector<std::string> order;
  while (const auto job = TakeFirst(queue)) order.push_back(job->context().id);
  EXPECT_THAT(order, testing::ElementsAre("high", "soon", "other", "patient", "late", "low"));
}

TEST_F(RequestQueueTest, RefusesWhatCannotMakeItsDeadlineUnlessTheWorkerIsIdle) {
  RequestQueue queue({});
  Teach(queue);
  const absl::Time soon = clock_.Now() + absl::Milliseconds(50);
  ASSERT_TRUE(queue.Push(JobWithId("tried", soon, 100)).ok());
  EXPECT_EQ(queue.Push(JobWithId("too_late", soon, 100)),
            // What its 100 rows take of a step's 132, of which 32 are the weights.
            absl::DeadlineExceededError("the request needs at least 75.757575ms, but its deadline is in 50ms"));
  ASSERT_TRUE(queue.Push(JobWithId("short", soon, 10)).ok());
}

TEST_F(RequestQueueTest, ReportsAJobThatBecameTooLateUnlessItIsAlone) {
  RequestQueue queue({});
  Teach(queue);
  const absl::Time deadline = clock_.Now() + absl::Milliseconds(150);
  for (const char* id : {"a", "b"}) ASSERT_TRUE(queue.Push(JobWithId(id, deadline, 100)).ok());
  const std::unique_ptr<Job> first = TakeFirst(queue);
  EXPECT_TRUE(queue.CheckDeadlineCanBeMet(*first, 100, clock_.Now()).ok());
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(queue.CheckDeadlineCanBeMet(*first, 100, clock_.Now()).code(), absl::StatusCode::kDeadlineExceeded);
  queue.Complete(*first, clock_.Now());
  EXPECT_TRUE(queue.CheckDeadlineCanBeMet(*TakeFirst(queue), 100, clock_.Now()).ok()) << "nothing else waits or runs";
}

TEST_F(RequestQueueTest, AWorkerIsIdleWhileAllThatItTookIsPaused) {
  RequestQueue queue({});
  Teach(queue);
  ASSERT_TRUE(queue.Push(JobWithId("slow reader")).ok());
  std::vector<std::unique_ptr<Job>> paused;
  paused.push_back(TakeFirst(queue));
  const std::shared_ptr<PauseFlag> flag = paused[0]->context().paused;
  *flag = true;
  queue.Return(std::move(paused));
  const absl::Time soon = clock_.Now() + absl::Milliseconds(50);
  ASSERT_TRUE(queue.Push(JobWithId("tried", soon, 100)).ok());
  const std::unique_ptr<Job> tried = TakeFirst(queue);
  EXPECT_TRUE(queue.CheckDeadlineCanBeMet(*tried, 100, clock_.Now()).ok());
  queue.Complete(*tried, clock_.Now());
  *flag = false;
  EXPECT_EQ(queue.Push(JobWithId("too_late", soon, 100)).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RequestQueueTest, BoundsTheTimeThatWaitsAndSaysWhenToComeBack) {
  RequestQueue queue({.limits = {.max_queued_cost = absl::Milliseconds(200)}});
  Teach(queue);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.Push(JobWithId("a", absl::InfiniteFuture(), 101)).ok());
  const absl::Status full = queue.Push(JobWithId("b", absl::InfiniteFuture(), 101));
  ASSERT_TRUE(GetRefusal(full).has_value()) << full;
  // Of the 132 rows that the first step is taken for, 100 were read and 32 are the weights.
  EXPECT_NEAR(absl::ToDoubleMilliseconds(GetRefusal(full)->retry_after), 2 * 101 * 100.0 / 132, 1);
  EXPECT_EQ(GetRefusal(full)->queue_depth, 2);
}

TEST_F(RequestQueueTest, ACallThatComesWhileNothingWaitsIsTakenWhateverItTakes) {
  RequestQueue queue({.limits = {.max_queued_cost = absl::Milliseconds(250)}});
  Teach(queue);
  for (int64_t i = 0; i < 4; ++i) {
    auto job = JobWithId("part", absl::InfiniteFuture(), 100, {.index = i, .count = 4});
    EXPECT_TRUE(queue.Push(std::move(job)).ok()) << i;
  }
  EXPECT_FALSE(queue.Push(JobWithId("other", absl::InfiniteFuture(), 100)).ok());
}

// Until the cost of steps is known, a token is taken for 5 ms, and 10 s may wait: the first steps say little, and may
// be far slower than later ones. From then on, requests that were queued before count with their cost.
TEST_F(RequestQueueTest, BoundsTheTimeThatWaitsOnceStepsAreKnownWheneverItCame) {
  RequestQueue queue({.limits = {.max_queued_cost = absl::Milliseconds(200)}});
  const auto push = [&] { return queue.Push(JobWithId("a", absl::InfiniteFuture(), 101)); };
  StepCost cost;
  for (int step = 1; step <= 9; ++step) {
    ASSERT_TRUE(push().ok());
    cost.Learn({.prefill = 100}, absl::Milliseconds(100));
    queue.SetSteps(0, cost, 1);
  }
  ASSERT_TRUE(push().ok());
  EXPECT_EQ(queue.load().waiting_cost, 10 * 101 * absl::Milliseconds(5));
  cost.Learn({.prefill = 100}, absl::Milliseconds(100));
  queue.SetSteps(0, cost, 1);
  const absl::Status full = push();
  ASSERT_TRUE(GetRefusal(full).has_value()) << full;
  EXPECT_NEAR(absl::ToDoubleMilliseconds(GetRefusal(full)->retry_after), 10 * 101 * 100.0 / 132, 1);
  while (TakeFirst(queue) != nullptr) continue;
  EXPECT_EQ(queue.load().waiting_cost, absl::ZeroDuration());
  EXPECT_TRUE(push().ok());
}

// A burst after a quiet night is bounded as one at noon is.
TEST_F(RequestQueueTest, BoundsTheTimeThatWaitsHoweverLongAgoItLearned) {
  RequestQueue queue({.limits = {.max_queued_cost = absl::Milliseconds(200)}});
  Teach(queue);
  clock_.Advance(absl::Hours(8));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.Push(JobWithId("a", absl::InfiniteFuture(), 101)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Push(JobWithId("b", absl::InfiniteFuture(), 101))));
}

TEST_F(RequestQueueTest, BoundsTheTimeThatWaitsWhileAWorkerThatFailedBeginsAgain) {
  RequestQueue queue({.limits = {.max_queued_cost = absl::Milliseconds(200)}});
  Teach(queue);
  StepCost of_new_worker;
  of_new_worker.Learn({.prefill = 1}, absl::Milliseconds(1));
  queue.SetSteps(0, of_new_worker, 1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.Push(JobWithId("a", absl::InfiniteFuture(), 101)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Push(JobWithId("b", absl::InfiniteFuture(), 101))));
}

TEST_F(RequestQueueTest, WakesTheWorkerForAJobAndForTheEnd) {
  RequestQueue queue({.limits = {.max_queued = 5}});
  int taken = 0;
  std::thread worker([&] {
    while (true) {
      const int64_t seen = queue.changes();
      while (TakeFirst(queue) != nullptr) ++taken;
      if (queue.closed() && queue.empty()) return;
      queue.WaitForChange(seen, absl::InfiniteDuration());
    }
  });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  queue.Close();
  worker.join();
  EXPECT_EQ(taken, 5);
}

// A job whose rows are with worker 1:
//   worker 0 skips it and takes the jobs behind it, until worker 1 has no room
TEST_F(RequestQueueTest, LeavesAJobToTheWorkerThatHasItsRowsUnlessThatOneIsFull) {
  RequestQueue queue({}, models::CpuWorkers(2));
  auto at_home = JobWithId("a");
  at_home->parked_rows = ParkedRows(ParkedPlace{.worker = 1, .id = 7});
  ASSERT_TRUE(queue.Push(std::move(at_home)).ok());
  ASSERT_TRUE(queue.Push(JobWithId("b")).ok());
  EXPECT_EQ(TakeFirst(queue, 0)->context().id, "b");
  EXPECT_FALSE(queue.HasJobFor({.worker = 0, .running = 0, .now = clock_.Now()}));
  EXPECT_TRUE(queue.HasJobFor({.worker = 1, .running = 0, .now = clock_.Now()}));
  EXPECT_EQ(TakeFirst(queue, 0), nullptr);

  const int64_t seen = queue.changes();
  EXPECT_EQ(TakeFirst(queue, 1, /*fits=*/false), nullptr);
  EXPECT_NE(queue.changes(), seen) << "the other one must be woken";
  EXPECT_TRUE(queue.HasJobFor({.worker = 0, .running = 0, .now = clock_.Now()}));
  EXPECT_EQ(TakeFirst(queue, 0)->context().id, "a");
}

TEST_F(RequestQueueTest, LeavesJobsToTheWorkerThatRunsTheFewestUnlessThatOneIsFull) {
  RequestQueue queue({}, models::CpuWorkers(2));
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(queue.Push(JobWithId(id)).ok());
  EXPECT_NE(queue.TakeFirst({.worker = 0, .running = 0, .now = clock_.Now()}, Take), nullptr);
  EXPECT_EQ(queue.TakeFirst({.worker = 0, .running = 1, .now = clock_.Now()}, Take), nullptr);
  EXPECT_NE(queue.TakeFirst({.worker = 1, .running = 0, .now = clock_.Now()}, Take), nullptr);
  EXPECT_TRUE(queue.HasJobFor({.worker = 0, .running = 1, .now = clock_.Now()}));
  EXPECT_FALSE(queue.HasJobFor({.worker = 0, .running = 2, .now = clock_.Now()}));
  queue.OnWorkerFull(1);
  EXPECT_NE(queue.TakeFirst({.worker = 0, .running = 2, .now = clock_.Now()}, Take), nullptr);
}

// What worker 0 takes 1 ms a token for, worker 1 takes a quarter of: it has less to do with three requests than worker
// 0 with one.
TEST_F(RequestQueueTest, LeavesJobsToAFasterWorkerUntilThatOneHasMoreToDo) {
  RequestQueue queue({}, {{.kind = models::DeviceKind::kCpu}, {.kind = models::DeviceKind::kCuda}});
  StepCost slow, fast;
  for (int i = 0; i < 10; ++i) {
    slow.Learn({.prefill = 100}, absl::Milliseconds(100));
    fast.Learn({.prefill = 100}, absl::Milliseconds(25));
  }
  queue.SetSteps(0, slow, 1);
  queue.SetSteps(1, fast, 1);
  const auto has_job = [&](int worker, int64_t running) {
    return queue.HasJobFor({.worker = worker, .running = running, .now = clock_.Now()});
  };
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  EXPECT_FALSE(has_job(0, 1)) << "the other one has nothing to do";
  EXPECT_TRUE(has_job(1, 3));
  EXPECT_FALSE(has_job(0, 1));
  EXPECT_FALSE(has_job(1, 5));
  EXPECT_TRUE(has_job(0, 1));
}

// Worker 0 was full, and all that it ran has ended at once.
TEST_F(RequestQueueTest, LeavesAJobToTheWorkerThatHasItsRowsAndSleepsAfterItWasFull) {
  RequestQueue queue({}, models::CpuWorkers(2));
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  const auto ended = TakeFirst(queue, 0);
  ASSERT_NE(ended, nullptr);
  queue.OnWorkerFull(0);
  queue.Complete(*ended, clock_.Now());
  EXPECT_FALSE(queue.HasJobFor({.worker = 0, .running = 0, .now = clock_.Now()}));
  auto at_home = JobWithId("b");
  at_home->parked_rows = ParkedRows(ParkedPlace{.worker = 0, .id = 7});
  ASSERT_TRUE(queue.Push(std::move(at_home)).ok());
  EXPECT_EQ(TakeFirst(queue, 1), nullptr);
  EXPECT_NE(TakeFirst(queue, 0), nullptr);
}

// Worker 0 runs two, worker 1 one and has not asked for a while.
TEST_F(RequestQueueTest, LeavesNothingToAWorkerThatIsStuckInAStep) {
  RequestQueue queue({}, models::CpuWorkers(2));
  const auto taker = [this](int worker, int64_t running) {
    return RequestQueue::Taker{.worker = worker, .running = running, .now = clock_.Now()};
  };
  EXPECT_FALSE(queue.HasJobFor(taker(1, 1)));
  auto at_home = JobWithId("a");
  at_home->parked_rows = ParkedRows(ParkedPlace{.worker = 1, .id = 7});
  ASSERT_TRUE(queue.Push(std::move(at_home)).ok());
  ASSERT_TRUE(queue.Push(JobWithId("b")).ok());
  EXPECT_EQ(queue.TakeFirst(taker(0, 2), Take), nullptr);
  clock_.Advance(absl::Seconds(1));
  EXPECT_NE(queue.TakeFirst(taker(0, 2), Take), nullptr);
  EXPECT_NE(queue.TakeFirst(taker(0, 3), Take), nullptr);
}

// Worker 0's model was given up, worker 1 runs five.
TEST_F(RequestQueueTest, LeavesALastTryToAWorkerThatIsNotFailingAsLongAsThereIsOne) {
  RequestQueue queue({}, models::CpuWorkers(2));
  const auto failing = RequestQueue::Taker{.worker = 0, .running = 0, .now = clock_.Now()};
  const auto busy = RequestQueue::Taker{.worker = 1, .running = 5, .now = clock_.Now()};
  const auto put_back = [&](std::unique_ptr<Job> job) {
    std::vector<std::unique_ptr<Job>> jobs;
    jobs.push_back(std::move(job));
    queue.Return(std::move(jobs));
  };
  ASSERT_TRUE(queue.Push(JobWithId("unlucky")).ok());
  std::unique_ptr<Job> job = queue.TakeFirst(failing, Take);
  job->steps.failures.OnFailure(/*alone=*/true);
  const int64_t seen = queue.changes();
  queue.OnModelDiscarded(0);
  EXPECT_GT(queue.changes(), seen) << "what was left to it may be another's";
  put_back(std::move(job));
  job = queue.TakeFirst(failing, Take);
  ASSERT_NE(job, nullptr) << "it has two tries left";
  job->steps.failures.OnFailure(/*alone=*/true);
  job->parked_rows = ParkedRows(ParkedPlace{.worker = 0, .id = 7});
  put_back(std::move(job));
  EXPECT_TRUE(queue.IsOnProbation(0));
  EXPECT_FALSE(queue.HasJobFor(failing));
  EXPECT_TRUE(queue.HasJobFor(busy));

  queue.OnModelDiscarded(1);
  EXPECT_FALSE(queue.IsOnProbation(0));
  EXPECT_TRUE(queue.HasJobFor(failing)) << "both are failing";
  queue.OnModelPassed(1);
  EXPECT_FALSE(queue.HasJobFor(failing));
  EXPECT_EQ(queue.TakeFirst(busy, Take)->context().id, "unlucky");
}

TEST_F(RequestQueueTest, AJobThatDoesNotFitIsOvertakenOnlyByJobsBeforeItInTheOrder) {
  RequestQueue queue({});
  ASSERT_TRUE(queue.Push(JobWithId("large", absl::InfiniteFuture(), 100)).ok());
  ASSERT_TRUE(queue.Push(JobWithId("small")).ok());
  const auto small_fits = [](const Job& job) {
    return job.context().id == "large" ? Decision::kWaitForRoom : Decision::kTake;
  };
  EXPECT_EQ(queue.TakeFirst({.worker = 0, .running = 0, .now = clock_.Now()}, small_fits), nullptr);
  auto urgent = JobWithId("urgent");
  const_cast<RequestContext&>(urgent->context()).priority = Priority::kHigh;
  ASSERT_TRUE(queue.Push(std::move(urgent)).ok());
  EXPECT_EQ(queue.TakeFirst({.worker = 0, .running = 0, .now = clock_.Now()}, small_fits)->context().id, "urgent");
  EXPECT_EQ(queue.TakeFirst({.worker = 0, .running = 0, .now = clock_.Now()}, small_fits), nullptr);
  EXPECT_EQ(TakeFirst(queue)->context().id, "large");
}

TEST_F(RequestQueueTest, WhatWouldNotBeReadSoonIsLeftToOthersUnlessItsRowsAreHere) {
  RequestQueue queue({}, models::CpuWorkers(2));
  const auto taker = [this](int worker, int64_t running) {
    return RequestQueue::Taker{.worker = worker, .running = running, .now = clock_.Now()};
  };
  EXPECT_FALSE(queue.HasJobFor(taker(1, 5)));
  ASSERT_TRUE(queue.Push(JobWithId("anywhere")).ok());
  auto at_home = JobWithId("at home");
  at_home->parked_rows = ParkedRows(ParkedPlace{.worker = 0, .id = 7});
  ASSERT_TRUE(queue.Push(std::move(at_home)).ok());
  EXPECT_EQ(queue.TakeFirst(taker(1, 5), Take), nullptr) << "worker 0 runs fewer";
  EXPECT_EQ(queue.TakeFirst(taker(0, 1), WaitToRead), nullptr);
  EXPECT_EQ(queue.TakeFirst(taker(1, 5), Take)->context().id, "anywhere");
  EXPECT_EQ(queue.TakeFirst(taker(1, 6), Take), nullptr);
  EXPECT_EQ(queue.TakeFirst(taker(0, 0), Take)->context().id, "at home");
}

TEST_F(RequestQueueTest, WhatLetsOthersPassIsTheNextForAnotherWorker) {
  RequestQueue queue({}, models::CpuWorkers(2));
  const auto taker = [this](int worker, int64_t running) {
    return RequestQueue::Taker{.worker = worker, .running = running, .now = clock_.Now()};
  };
  EXPECT_FALSE(queue.HasJobFor(taker(1, 5)));
  ASSERT_TRUE(queue.Push(JobWithId("long")).ok());
  ASSERT_TRUE(queue.Push(JobWithId("short")).ok());
  EXPECT_EQ(queue.TakeFirst(taker(0, 1), SkipLong)->context().id, "short");
  EXPECT_EQ(queue.TakeFirst(taker(1, 5), Take), nullptr) << "worker 0 runs fewer, and may still take it";
  EXPECT_EQ(queue.TakeFirst(taker(0, 2), SkipLong), nullptr);
  EXPECT_EQ(queue.TakeFirst(taker(1, 5), Take)->context().id, "long");
}

// Half of the streams of worker 1, which has its rows, read long prompts; worker 0 sleeps.
TEST_F(RequestQueueTest, WhatLetsOthersPassWhereItsRowsAreIsTheNextForAnotherWorker) {
  RequestQueue queue({}, models::CpuWorkers(2));
  const auto taker = [this](int worker, int64_t running) {
    return RequestQueue::Taker{.worker = worker, .running = running, .now = clock_.Now()};
  };
  for (const char* id : {"long", "short"}) {
    auto at_home = JobWithId(id);
    at_home->parked_rows = ParkedRows(ParkedPlace{.worker = 1, .id = 7});
    ASSERT_TRUE(queue.Push(std::move(at_home)).ok());
  }
  EXPECT_FALSE(queue.HasJobFor(taker(0, 0)));
  const int64_t seen = queue.changes();
  EXPECT_EQ(queue.TakeFirst(taker(1, 5), SkipLong)->context().id, "short");
  EXPECT_NE(queue.changes(), seen) << "the other one must be woken";
  const int64_t woken = queue.changes();
  EXPECT_EQ(queue.TakeFirst(taker(1, 6), SkipLong), nullptr);
  EXPECT_EQ(queue.changes(), woken) << "once";
  EXPECT_TRUE(queue.HasJobFor(taker(0, 0)));
  EXPECT_EQ(queue.TakeFirst(taker(0, 0), Take)->context().id, "long");
}

// No event reports that a worker is stuck in a step.
TEST_F(RequestQueueTest, WhoSleepsLooksAgainWhileAnythingWaits) {
  RequestQueue queue({});
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  const absl::Time begin = absl::Now();
  queue.WaitForChange(queue.changes(), absl::Minutes(1));
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1));
}

TEST_F(RequestQueueTest, WhatIsReturnedGoesOnBeforeAllThatWaitsUnlessItIsPaused) {
  RequestQueue queue({});
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(queue.Push(JobWithId(id)).ok());
  std::vector<std::unique_ptr<Job>> taken;
  for (int i = 0; i < 2; ++i) taken.push_back(TakeFirst(queue));
  const std::shared_ptr<PauseFlag> paused = taken[0]->context().paused;
  paused->store(true);
  const int64_t seen = queue.changes();
  queue.Return(std::move(taken));
  EXPECT_GT(queue.changes(), seen) << "another worker may take them";
  queue.Close();
  EXPECT_EQ(queue.size(), 2) << "a waits for its client, not for a worker";
  std::vector<std::unique_ptr<Job>> again;
  for (const char* id : {"b", "c"}) {
    again.push_back(TakeFirst(queue));
    EXPECT_EQ(again.back()->context().id, id);
  }
  EXPECT_EQ(TakeFirst(queue), nullptr);
  EXPECT_FALSE(queue.HasJobFor({.worker = 0, .running = 0, .now = clock_.Now()}));
  EXPECT_FALSE(queue.empty());
  paused->store(false);
  again.push_back(TakeFirst(queue));
  EXPECT_EQ(again.back()->context().id, "a");
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.over()) << "they may come back";
  for (const auto& job : again) queue.Complete(*job, clock_.Now());
  EXPECT_TRUE(queue.over());
}

// A push would wait for ever if the queue held its lock.
TEST_F(RequestQueueTest, AWorkerSearchesForAJobWithoutTheLockWhileOthersPassOverIt) {
  RequestQueue queue({}, models::CpuWorkers(2));
  for (const char* id : {"long", "short"}) ASSERT_TRUE(queue.Push(JobWithId(id)).ok());
  int searches = 0;
  const auto decide = [&](const Job& job) {
    return job.context().id == "long" && searches == 0 ? Decision::kSearch : Decision::kTake;
  };
  const auto search = [&](const Job& job) {
    ++searches;
    EXPECT_EQ(job.context().id, "long");
    EXPECT_EQ(TakeFirst(queue, 1)->context().id, "short");
    EXPECT_FALSE(queue.HasJobFor({.worker = 1, .running = 0, .now = clock_.Now()}));
    EXPECT_TRUE(queue.Push(JobWithId("later")).ok());
    job.context().cancelled->store(true);
    EXPECT_TRUE(queue.TakeAbandoned(clock_.Now()).empty()) << "a worker uses it";
    EXPECT_EQ(queue.TakeAll().size(), 1u) << "only the later one";
  };
  const int64_t seen = queue.changes();
  EXPECT_EQ(queue.TakeFirst({.worker = 0, .running = 0, .now = clock_.Now()}, decide, search)->context().id, "long");
  EXPECT_EQ(searches, 1);
  EXPECT_GT(queue.changes(), seen) << "the other worker must look again";
}

}  // namespace longshort::core::request_queue_test
