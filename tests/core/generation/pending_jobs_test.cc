#include "core/generation/pending_jobs.h"

#include "gtest/gtest.h"
#include "tests/core/fakes/scoring_jobs.h"

namespace longshort::core::pending_jobs_test {

bool Any(const Job&) { return true; }

class PendingJobsTest : public testing::Test {
 protected:
  const Job* Add(const std::string& client, int64_t tokens = 2) {
    std::unique_ptr<Job> job = make_.Make(client, Priority::kNormal, tokens);
    const Job* const added = job.get();
    EXPECT_TRUE(jobs_.Add(std::move(job), /*free_streams=*/0).ok());
    return added;
  }
  std::unique_ptr<Job> Take() { return jobs_.TakeInOrder(*jobs_.FirstInOrder(Any), 0); }
  // 1 ms a token.
  void SetSteps() {
    StepCost cost;
    for (int i = 0; i < 10; ++i) cost.Learn({.prefill = 100}, absl::Milliseconds(100));
    jobs_.SetSteps(0, cost, 1);
  }

  FakeClock clock_;
  ScoringJobs make_{clock_};
  PendingJobs jobs_{{.limits = {.max_queued_cost = absl::Milliseconds(200)}}, models::CpuWorkers(1)};
};

TEST_F(PendingJobsTest, ReturnedJobsKeepTheOrderInWhichTheyWereTaken) {
  for (const char* client : {"a", "b", "c"}) Add(client);
  std::vector<std::unique_ptr<Job>> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(Take());
  const Job* const first = taken[0].get();
  const Job* const second = taken[1].get();
  first->context().paused->store(true);
  std::swap(taken[0], taken[2]);
  jobs_.Return(std::move(taken));
  EXPECT_EQ(jobs_.FirstReturned(Any), second) << "the first one is paused";
  EXPECT_EQ(jobs_.size(), 2);
  EXPECT_EQ(jobs_.Running(), 2) << "a paused job does not run";
  first->context().paused->store(false);
  EXPECT_EQ(jobs_.FirstReturned(Any), first);
  EXPECT_EQ(jobs_.TakeReturned(*first, 0).get(), first);
  EXPECT_EQ(jobs_.FirstReturned(Any), second);
}

TEST_F(PendingJobsTest, ADisplacedJobWaitsInOrderAndItsClientHasPaid) {
  Add("a");
  Add("b");
  std::unique_ptr<Job> displaced = Take();
  const Job* const of_a = displaced.get();
  displaced->steps.worker_time.all = absl::Seconds(1);
  jobs_.Requeue(std::move(displaced));
  EXPECT_EQ(jobs_.Running(), 0);
  EXPECT_EQ(jobs_.FirstInOrder(Any)->context().client, "b");
  EXPECT_EQ(Take()->context().client, "b");
  EXPECT_EQ(Take().get(), of_a);
}

// Two jobs take 153 ms of the 200 ms that may wait.
TEST_F(PendingJobsTest, RefusesAJobBeyondTheTimeThatMayWait) {
  SetSteps();
  Add("a", 101);
  Add("a", 101);
  std::unique_ptr<Job> third = make_.Make("a", Priority::kNormal, 101);
  EXPECT_TRUE(absl::IsResourceExhausted(jobs_.Add(std::move(third), /*free_streams=*/0)));
  EXPECT_EQ(jobs_.size(), 2);
}

TEST_F(PendingJobsTest, AJobThatWasNeverTakenNeedsNoCompletion) {
  const std::unique_ptr<Job> refused = make_.Make("a");
  EXPECT_FALSE(jobs_.Complete(*refused, clock_.Now()));
  Add("a");
  const std::unique_ptr<Job> taken = Take();
  EXPECT_TRUE(jobs_.Complete(*taken, clock_.Now()));
  EXPECT_EQ(jobs_.load().running, 0);
}

TEST_F(PendingJobsTest, RemovesJobsWhereverTheyWait) {
  Add("a");
  Add("b");
  Add("a");
  std::vector<std::unique_ptr<Job>> taken;
  taken.push_back(Take());
  ASSERT_EQ(taken[0]->context().client, "a");
  jobs_.Return(std::move(taken));
  EXPECT_EQ(jobs_.RemoveIf([](const Job& job) { return job.context().client == "a"; }).size(), 2u);
  EXPECT_EQ(jobs_.size(), 1);
}

}  // namespace longshort::core::pending_jobs_test
