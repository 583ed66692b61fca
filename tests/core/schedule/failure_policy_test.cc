#include "core/schedule/failure_policy.h"

#include <stdexcept>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace longshort::core::failure_policy_test {

TEST(WorkFailures, IsCleanAtFirst) {
  EXPECT_FALSE(WorkFailures(WorkFailures::kOfSequence).suspect());
  EXPECT_FALSE(WorkFailures(WorkFailures::kOfSequence).exhausted());
}

TEST(WorkFailures, WhoFailedInCompanyIsSuspectUntilItPassesAStep) {
  WorkFailures record(WorkFailures::kOfSequence);
  record.OnFailure(/*alone=*/false);
  EXPECT_TRUE(record.suspect());
  record.OnFailure(/*alone=*/true);
  EXPECT_TRUE(record.suspect());
  record.OnSuccess(/*alone=*/true);
  EXPECT_FALSE(record.suspect());
}

TEST(WorkFailures, WhoFailsAloneIsTriedThreeTimes) {
  WorkFailures record(WorkFailures::kOfSequence);
  for (int round = 0; round < 5; ++round) {
    record.OnFailure(/*alone=*/true);
    record.OnFailure(/*alone=*/true);
    EXPECT_FALSE(record.exhausted());
    record.OnSuccess(/*alone=*/true);
  }
  for (int failure = 0; failure < 3; ++failure) record.OnFailure(/*alone=*/true);
  EXPECT_TRUE(record.exhausted());
}

// It passes every step alone, and none with others.
TEST(WorkFailures, AnItemThatFailsInEveryBatchEndsAfterNineTries) {
  WorkFailures record(WorkFailures::kOfSequence);
  for (int failure = 1; failure <= 9; ++failure) {
    EXPECT_FALSE(record.exhausted());
    record.OnFailure(/*alone=*/false);
    record.OnSuccess(/*alone=*/true);
  }
  EXPECT_TRUE(record.exhausted());
}

TEST(WorkFailures, AStepPassedInCompanyClearsIt) {
  WorkFailures record(WorkFailures::kOfSequence);
  for (int failure = 0; failure < 8; ++failure) record.OnFailure(/*alone=*/false);
  record.OnSuccess(/*alone=*/false);
  record.OnFailure(/*alone=*/false);
  EXPECT_FALSE(record.exhausted());
}

TEST(WorkFailures, AnItemIsTriedThreeTimesWhateverItsFirstBatch) {
  for (const bool alone_at_first : {true, false}) {
    WorkFailures record(WorkFailures::kOfItem);
    EXPECT_FALSE(record.any());
    record.OnFailure(alone_at_first);
    EXPECT_TRUE(record.any());
    EXPECT_FALSE(record.on_last_try());
    record.OnFailure(/*alone=*/true);
    EXPECT_TRUE(record.on_last_try());
    EXPECT_FALSE(record.exhausted());
    record.OnFailure(/*alone=*/true);
    EXPECT_TRUE(record.exhausted());
  }
}

TEST(ModelHealth, AModelThatThrowsIsDiscarded) {
  ModelHealth health;
  EXPECT_FALSE(health.broken());
  struct Result {
    absl::Span<const float> logits;
  };
  const auto throws = []() -> absl::StatusOr<Result> { throw std::runtime_error("no memory"); };
  EXPECT_EQ(health.RunModel("a step", &Result::logits, 1, throws).status().message(), "a step failed: no memory");
  EXPECT_TRUE(health.broken());
}

TEST(ModelHealth, AModelThatFailsTwiceInARowIsDiscarded) {
  ModelHealth health;
  for (int round = 0; round < 3; ++round) {
    health.OnFailure(/*on_probation=*/false);
    EXPECT_FALSE(health.broken());
    health.OnSuccess();
  }
  health.OnFailure(/*on_probation=*/false);
  health.OnFailure(/*on_probation=*/false);
  EXPECT_TRUE(health.broken());
}

TEST(ModelHealth, OnProbationTheFirstFailureIsTheLast) {
  ModelHealth health;
  health.OnFailure(/*on_probation=*/true);
  EXPECT_TRUE(health.broken());
}

TEST(ModelReplacement, ComesAtOnceButASecondLaterAfterATrial) {
  const absl::Time now = absl::FromUnixSeconds(100);
  ModelReplacement replacement;
  replacement.OnModelDiscarded(/*on_probation=*/false, now);
  EXPECT_EQ(replacement.next_try(), now);
  replacement.OnModelDiscarded(/*on_probation=*/true, now);
  EXPECT_EQ(replacement.next_try(), now + absl::Seconds(1));
  replacement.OnRebuildFailed(now + absl::Seconds(1));
  EXPECT_EQ(replacement.next_try(), now + absl::Seconds(2));
}

TEST(WorkerProbation, AWorkerIsOnProbationUntilItsNextModelPasses) {
  WorkerProbation trials(2);
  EXPECT_FALSE(trials.IsOnProbation(0));
  trials.OnModelDiscarded(0);
  EXPECT_TRUE(trials.IsOnProbation(0));
  EXPECT_FALSE(trials.IsOnProbation(1));
  trials.OnModelPassed(0);
  EXPECT_FALSE(trials.IsOnProbation(0));
}

TEST(WorkerProbation, NoWorkerIsOnProbationWhereAllWouldBe) {
  WorkerProbation trials(2);
  trials.OnModelDiscarded(0);
  trials.OnModelDiscarded(1);
  EXPECT_FALSE(trials.IsOnProbation(0));
  EXPECT_FALSE(trials.IsOnProbation(1));
  WorkerProbation single(1);
  single.OnModelDiscarded(0);
  EXPECT_FALSE(single.IsOnProbation(0));
}

TEST(WorkerProbation, TheLastTryIsNotOfAWorkerOnProbation) {
  WorkerProbation trials(2);
  trials.OnModelDiscarded(0);
  WorkFailures failures(WorkFailures::kOfItem);
  failures.OnFailure(/*alone=*/true);
  EXPECT_TRUE(trials.MayTake(0, failures));
  failures.OnFailure(/*alone=*/true);
  EXPECT_FALSE(trials.MayTake(0, failures));
  EXPECT_TRUE(trials.MayTake(1, failures));
}

}  // namespace longshort::core::failure_policy_test
