#include "core/workers/work_failures.h"

#include "gtest/gtest.h"

namespace longshort {
namespace {

TEST(WorkFailures, IsCleanAtFirst) {
  EXPECT_FALSE(WorkFailures().suspect());
  EXPECT_FALSE(WorkFailures().hopeless());
}

TEST(WorkFailures, WhoFailedInCompanyIsSuspectUntilItPassesAStep) {
  WorkFailures record;
  record.OnFailure(/*alone=*/false);
  EXPECT_TRUE(record.suspect());
  record.OnFailure(/*alone=*/true);
  EXPECT_TRUE(record.suspect());
  record.OnSuccess(/*alone=*/true);
  EXPECT_FALSE(record.suspect());
}

TEST(WorkFailures, WhoFailsAloneIsTriedThreeTimes) {
  WorkFailures record;
  for (int round = 0; round < 5; ++round) {
    record.OnFailure(/*alone=*/true);
    record.OnFailure(/*alone=*/true);
    EXPECT_FALSE(record.hopeless());
    record.OnSuccess(/*alone=*/true);
  }
  for (int failure = 0; failure < 3; ++failure) record.OnFailure(/*alone=*/true);
  EXPECT_TRUE(record.hopeless());
}

// It passes every step alone, and none with others.
TEST(WorkFailures, WhoFailsInAnyCompanyIsHopelessAfterNineTimes) {
  WorkFailures record;
  for (int failure = 1; failure <= 9; ++failure) {
    EXPECT_FALSE(record.hopeless());
    record.OnFailure(/*alone=*/false);
    record.OnSuccess(/*alone=*/true);
  }
  EXPECT_TRUE(record.hopeless());
}

TEST(WorkFailures, AStepPassedInCompanyClearsIt) {
  WorkFailures record;
  for (int failure = 0; failure < 8; ++failure) record.OnFailure(/*alone=*/false);
  record.OnSuccess(/*alone=*/false);
  record.OnFailure(/*alone=*/false);
  EXPECT_FALSE(record.hopeless());
}

}  // namespace
}  // namespace longshort
