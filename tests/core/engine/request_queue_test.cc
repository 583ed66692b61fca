#include "core/engine/request_queue.h"

#include <thread>

#include "core/engine/scoring_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"
#include "tests/core/fakes/recording_listeners.h"

namespace longshort {
namespace {

class RequestQueueTest : public testing::Test {
 protected:
  std::unique_ptr<Job> JobWithId(const std::string& id, absl::Time deadline = absl::InfiniteFuture()) {
    ScoringRequest request;
    request.context.id = id;
    request.context.deadline = deadline;
    request.tokens = {1, 2};
    return std::make_unique<ScoringJob>(std::move(request), listener_, 10, observer_);
  }

  const std::shared_ptr<RecordingScoringListener> listener_ = std::make_shared<RecordingScoringListener>();
  RecordingObserver observer_;
};

TEST_F(RequestQueueTest, GivesBackFirstWhatCameFirst) {
  RequestQueue queue(3);
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  ASSERT_TRUE(queue.Push(JobWithId("b")).ok());
  EXPECT_EQ(queue.TakeFirst()->context().id, "a");
  EXPECT_EQ(queue.TakeFirst()->context().id, "b");
  EXPECT_EQ(queue.TakeFirst(), nullptr);
}

TEST_F(RequestQueueTest, RefusesWhatItHasNoRoomForAndSaysHowLongItIs) {
  RequestQueue queue(1);
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  EXPECT_EQ(queue.Push(JobWithId("b")),
            absl::ResourceExhaustedError("the queue is full: 1 requests wait, the limit is 1"));
  EXPECT_EQ(queue.size(), 1);
  EXPECT_FALSE(listener_->end.ended());  // who was refused never hears
}

TEST_F(RequestQueueTest, RefusesEverythingOnceClosedButKeepsWhatIsThere) {
  RequestQueue queue(2);
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  queue.Close();
  EXPECT_EQ(queue.Push(JobWithId("b")).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(queue.WaitForJob());
  EXPECT_NE(queue.TakeFirst(), nullptr);
  EXPECT_FALSE(queue.WaitForJob());
}

TEST_F(RequestQueueTest, SeparatesThoseThatNobodyWaitsForAndKeepsTheOrderOfTheRest) {
  FakeClock clock;
  RequestQueue queue(5);
  auto cancelled = JobWithId("b");
  cancelled->context().cancelled->store(true);
  ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  ASSERT_TRUE(queue.Push(std::move(cancelled)).ok());
  ASSERT_TRUE(queue.Push(JobWithId("c", clock.Now())).ok());
  ASSERT_TRUE(queue.Push(JobWithId("d", clock.Now() + absl::Nanoseconds(1))).ok());
  const auto abandoned = queue.TakeAbandoned(clock.Now());
  ASSERT_EQ(abandoned.size(), 2u);
  EXPECT_EQ(abandoned[0]->context().id, "b");
  EXPECT_EQ(abandoned[1]->context().id, "c");
  EXPECT_EQ(queue.TakeFirst()->context().id, "a");
  EXPECT_EQ(queue.TakeFirst()->context().id, "d");
}

TEST_F(RequestQueueTest, WakesTheWorkerForAJobAndForTheEnd) {
  RequestQueue queue(5);
  int taken = 0;
  std::thread worker([&] {
    while (queue.WaitForJob()) taken += queue.TakeFirst() != nullptr ? 1 : 0;
  });
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(queue.Push(JobWithId("a")).ok());
  queue.Close();
  worker.join();
  EXPECT_EQ(taken, 5);
}

}  // namespace
}  // namespace longshort
