#include "core/generation/placement.h"

#include "gtest/gtest.h"
#include "tests/core/fakes/scoring_jobs.h"

namespace longshort::core::placement_test {

class PlacementTest : public testing::Test {
 protected:
  Taker TakerOf(int worker, int64_t running) const {
    return {.worker = worker, .running = running, .max_streams = 4, .now = clock_.Now()};
  }
  static std::unique_ptr<Job> ParkedWith(int worker, std::unique_ptr<Job> job) {
    job->parked_rows = ParkedRows(ParkedPlace{.worker = worker, .id = 7});
    return job;
  }

  FakeClock clock_;
  ScoringJobs make_{clock_};
  PendingJobs jobs_{{}, models::CpuWorkers(2)};
  WorkerProbation probation_{2};
  Placement placement_{2, jobs_, probation_};
  const std::unique_ptr<Job> job_ = make_.Make("a");
};

TEST_F(PlacementTest, AJobIsLeftToTheLeastBusyWorker) {
  placement_.Record(TakerOf(0, 2));
  placement_.Record(TakerOf(1, 1));
  EXPECT_FALSE(placement_.IsFor(TakerOf(0, 2), *job_));
  EXPECT_TRUE(placement_.IsFor(TakerOf(1, 1), *job_));
  placement_.OnTaken(1);
  EXPECT_TRUE(placement_.IsFor(TakerOf(0, 2), *job_)) << "both run two";
}

TEST_F(PlacementTest, NoJobIsLeftToAWorkerWithoutRoomOrWithEnoughToRead) {
  placement_.Record(TakerOf(0, 2));
  placement_.Record(TakerOf(1, 1));
  EXPECT_FALSE(placement_.IsFor(TakerOf(0, 2), *job_));
  placement_.SetHasEnoughToRead(1, true);
  EXPECT_TRUE(placement_.IsFor(TakerOf(0, 2), *job_));
  placement_.SetHasEnoughToRead(1, false);
  EXPECT_TRUE(placement_.SetHasRoom(1, false)) << "the other worker may take its jobs";
  EXPECT_FALSE(placement_.SetHasRoom(1, false)) << "nothing new";
  EXPECT_TRUE(placement_.IsFor(TakerOf(0, 2), *job_));
}

TEST_F(PlacementTest, NoJobIsLeftToAWorkerThatHangsInAStep) {
  placement_.Record(TakerOf(0, 2));
  placement_.Record(TakerOf(1, 1));
  clock_.Advance(Placement::kLongestStep - absl::Milliseconds(1));
  EXPECT_FALSE(placement_.IsFor(TakerOf(0, 2), *job_));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(placement_.IsFor(TakerOf(0, 2), *job_));
  placement_.Record(TakerOf(1, 0));
  clock_.Advance(absl::Hours(1));
  EXPECT_FALSE(placement_.IsFor(TakerOf(0, 2), *job_)) << "a worker that runs nothing sleeps, and wakes for the job";
}

TEST_F(PlacementTest, AJobIsLeftToTheWorkerWithItsRowsUntilThatOneSkipsIt) {
  const std::unique_ptr<Job> job = ParkedWith(1, make_.Make("a"));
  placement_.Record(TakerOf(0, 0));
  placement_.Record(TakerOf(1, 3));
  EXPECT_FALSE(placement_.IsFor(TakerOf(0, 0), *job));
  EXPECT_TRUE(placement_.IsFor(TakerOf(1, 3), *job));
  EXPECT_TRUE(Placement::SetSkippedByOwner(*job, true)) << "others may take it now";
  EXPECT_FALSE(Placement::SetSkippedByOwner(*job, true));
  EXPECT_TRUE(placement_.IsFor(TakerOf(0, 0), *job));
}

TEST_F(PlacementTest, ALastTryIsNotForAWorkerOnProbation) {
  for (int i = 0; i < 2; ++i) job_->steps.failures.OnFailure(/*alone=*/true);
  probation_.OnModelDiscarded(0);
  placement_.Record(TakerOf(0, 0));
  placement_.Record(TakerOf(1, 3));
  EXPECT_FALSE(placement_.IsFor(TakerOf(0, 0), *job_));
  EXPECT_TRUE(placement_.IsFor(TakerOf(1, 3), *job_));
}

TEST_F(PlacementTest, FreeStreamsAreThoseOfWorkersThatTakeJobs) {
  EXPECT_EQ(placement_.FreeStreams(), 0) << "no worker has said how many it has";
  placement_.Record(TakerOf(0, 1));
  placement_.Record(TakerOf(1, 4));
  EXPECT_EQ(placement_.FreeStreams(), 3);
  placement_.SetHasEnoughToRead(0, true);
  EXPECT_EQ(placement_.FreeStreams(), 0);
}

// One worker with four streams. Client "large" runs three jobs, unless the test says otherwise.
class DisplacementTest : public testing::Test {
 protected:
  void Run(const std::string& client, Priority priority = Priority::kNormal) {
    ASSERT_TRUE(jobs_.Add(make_.Make(client, priority), 0).ok());
    taken_.push_back(jobs_.TakeInOrder(*jobs_.FirstInOrder([](const Job&) { return true; }), 0));
  }
  const Job* Wait(const std::string& client, Priority priority = Priority::kNormal) {
    EXPECT_TRUE(jobs_.Add(make_.Make(client, priority), 0).ok());
    return jobs_.FirstInOrder([&](const Job& job) { return job.context().client == client; });
  }
  const Job* Choose(const Job* next) const {
    std::vector<const Job*> running;
    for (const auto& job : taken_) running.push_back(job.get());
    return displacement_.Choose(*next, running);
  }
  Taker Now(int64_t running) const { return {.worker = 0, .running = running, .max_streams = 4, .now = clock_.Now()}; }

  FakeClock clock_;
  ScoringJobs make_{clock_};
  PendingJobs jobs_{{}, models::CpuWorkers(1)};
  Displacement displacement_{1, jobs_};
  std::vector<std::unique_ptr<Job>> taken_;
};

TEST_F(DisplacementTest, TheLatestJobOfTheClientThatRunsTheMostMakesRoom) {
  for (const char* client : {"large", "large", "small", "large"}) Run(client);
  const Job* const next = Wait("new");
  EXPECT_TRUE(displacement_.IsBelowShare("new"));
  EXPECT_FALSE(displacement_.IsBelowShare("small")) << "it runs one of four jobs of three clients";
  EXPECT_EQ(Choose(next), taken_[3].get());
}

TEST_F(DisplacementTest, NoJobMakesRoomWhereNobodyRunsMoreThanAShare) {
  for (const char* client : {"a", "b", "c", "d"}) Run(client);
  EXPECT_EQ(Choose(Wait("new")), nullptr);
}

TEST_F(DisplacementTest, AJobOfAHigherPriorityMakesRoomOnlyForAClientThatRunsNothing) {
  for (int i = 0; i < 7; ++i) Run("large", Priority::kHigh);
  Run("small");
  EXPECT_NE(Choose(Wait("new")), nullptr);
  EXPECT_TRUE(displacement_.IsBelowShare("small"));
  EXPECT_EQ(Choose(Wait("small")), nullptr);
  EXPECT_NE(Choose(Wait("small too", Priority::kHigh)), nullptr);
}

// Client "new" sends its next request after each answer: the room stays its own for as long as it does.
TEST_F(DisplacementTest, TheRoomIsKeptForClientsBelowTheirShareUntilNoneUsesIt) {
  for (int i = 0; i < 3; ++i) Run("large");
  const std::unique_ptr<Job> of_large = make_.Make("large"), of_new = make_.Make("new");
  EXPECT_FALSE(displacement_.KeepsRoomFrom(Now(3), *of_large));
  displacement_.OnDisplaced(Now(4));
  EXPECT_TRUE(displacement_.KeepsRoomFrom(Now(3), *of_large));
  EXPECT_FALSE(displacement_.KeepsRoomFrom(Now(3), *of_new));
  EXPECT_FALSE(displacement_.KeepsRoomFrom(Now(2), *of_large)) << "that leaves a stream";
  clock_.Advance(Displacement::kKeepRoom - absl::Milliseconds(1));
  displacement_.OnTaken(Now(3));
  clock_.Advance(Displacement::kKeepRoom - absl::Milliseconds(1));
  EXPECT_TRUE(displacement_.KeepsRoomFrom(Now(3), *of_large));
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_FALSE(displacement_.KeepsRoomFrom(Now(3), *of_large));
}

}  // namespace longshort::core::placement_test
