#include "core/engine/failure_record.h"

#include "gtest/gtest.h"

namespace longshort {
namespace {

TEST(FailureRecord, IsCleanAtFirst) {
  EXPECT_FALSE(FailureRecord().suspect());
  EXPECT_FALSE(FailureRecord().hopeless());
}

TEST(FailureRecord, WhoFailedInCompanyIsSuspectUntilItPassesAStep) {
  FailureRecord record;
  record.OnFailure(/*alone=*/false);
  EXPECT_TRUE(record.suspect());
  record.OnFailure(/*alone=*/true);
  EXPECT_TRUE(record.suspect());
  record.OnSuccess(/*alone=*/true);
  EXPECT_FALSE(record.suspect());
}

TEST(FailureRecord, WhoFailsAloneIsTriedThreeTimes) {
  FailureRecord record;
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
TEST(FailureRecord, WhoFailsInAnyCompanyIsHopelessAfterNineTimes) {
  FailureRecord record;
  for (int failure = 1; failure <= 9; ++failure) {
    EXPECT_FALSE(record.hopeless());
    record.OnFailure(/*alone=*/false);
    record.OnSuccess(/*alone=*/true);
  }
  EXPECT_TRUE(record.hopeless());
}

TEST(FailureRecord, AStepPassedInCompanyClearsIt) {
  FailureRecord record;
  for (int failure = 0; failure < 8; ++failure) record.OnFailure(/*alone=*/false);
  record.OnSuccess(/*alone=*/false);
  record.OnFailure(/*alone=*/false);
  EXPECT_FALSE(record.hopeless());
}

}  // namespace
}  // namespace longshort
