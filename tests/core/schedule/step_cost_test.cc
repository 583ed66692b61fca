#include <random>

#include "core/schedule/estimators.h"
#include "gtest/gtest.h"

namespace longshort::core::step_cost_test {

// A machine: 5 ms for the weights, 0.3 ms for a row that decodes, 0.1 ms for one of a prompt; each step within 5 % of
// it.
class Machine {
 public:
  absl::Duration Run(const StepRows& rows) {
    const double milliseconds = 5 + 0.3 * static_cast<double>(rows.decoding) + 0.1 * static_cast<double>(rows.prefill);
    return absl::Milliseconds(milliseconds * std::uniform_real_distribution<>(0.95, 1.05)(random_));
  }
  StepRows SomeRows() {
    return {.decoding = static_cast<int64_t>(random_() % 17),
            .prefill = random_() % 2 == 0 ? 0 : static_cast<int64_t>(1 + random_() % 400)};
  }
  StepCost Known() {
    StepCost cost;
    for (int i = 0; i < 500; ++i) {
      StepRows rows = SomeRows();
      rows.decoding = std::max<int64_t>(1, rows.decoding);
      cost.Learn(rows, Run(rows));
    }
    return cost;
  }

 private:
  std::mt19937 random_{7};
};

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

TEST(StepCost, IsUnknownUntilAStepTookTime) {
  StepCost cost;
  cost.Learn({.decoding = 1}, absl::ZeroDuration());
  EXPECT_FALSE(cost.known());
  EXPECT_EQ(cost.Of({.decoding = 3, .prefill = 100}), absl::ZeroDuration());
  cost.Learn({.decoding = 1}, absl::Milliseconds(5));
  EXPECT_TRUE(cost.known());
  EXPECT_NEAR(Milliseconds(cost.Of({.decoding = 1})), 5, 1e-6);
}

TEST(StepCost, LearnsThePartsOfAStep) {
  const StepCost cost = Machine().Known();
  EXPECT_NEAR(Milliseconds(cost.fixed()), 5, 0.5);
  EXPECT_NEAR(Milliseconds(cost.decoding_row()), 0.3, 0.08);
  EXPECT_NEAR(Milliseconds(cost.prefill_row()), 0.1, 0.01);
}

TEST(StepCost, AFirstStepThatTookAHundredTimesAsLongIsForgottenSoon) {
  Machine machine;
  StepCost cost;
  cost.Learn({.decoding = 1}, 100 * machine.Run({.decoding = 1}));
  for (int i = 0; i < 30; ++i) cost.Learn({.decoding = 1}, machine.Run({.decoding = 1}));
  EXPECT_NEAR(Milliseconds(cost.Of({.decoding = 1})), 5.3, 0.5);
}

TEST(StepCost, AStallCountsNoMoreThanASlowStep) {
  Machine machine;
  StepCost cost = machine.Known();
  const absl::Duration before = cost.Of({.decoding = 8});
  cost.Learn({.decoding = 8}, 100 * machine.Run({.decoding = 8}));
  EXPECT_LT(cost.Of({.decoding = 8}), 2 * before);
  for (int i = 0; i < 10; ++i) cost.Learn({.decoding = 8}, machine.Run({.decoding = 8}));
  EXPECT_NEAR(absl::FDivDuration(cost.Of({.decoding = 8}), before), 1, 0.1);
}

TEST(StepCost, HoursOfDecodingLeaveWhatIsKnownOfPromptsAlone) {
  Machine machine;
  StepCost cost = machine.Known();
  for (int i = 0; i < 100'000; ++i) cost.Learn({.decoding = 4}, machine.Run({.decoding = 4}));
  EXPECT_NEAR(Milliseconds(cost.prefill_row()), 0.1, 0.01);
  EXPECT_NEAR(Milliseconds(cost.Of({.decoding = 4})), 6.2, 0.4);
}

TEST(StreamEstimator, KnowsNothingUntilSomeStepsHaveRunAndNotHowFastPromptsAreUntilOneWasRead) {
  StreamEstimator estimator;
  EXPECT_EQ(estimator.Cost({.prompt = 100, .generated = 100}), absl::ZeroDuration());
  estimator.SetSteps(Machine().Known(), 16);
  EXPECT_NEAR(Milliseconds(estimator.Cost({.prompt = 100, .generated = 100})), 10 + 100 * (0.3 + 5.0 / 16), 8);
  EXPECT_FALSE(estimator.FastPrefill(100, absl::UnixEpoch()).has_value());
}

// Alone, a stream pays for all of its steps; a request that waits will share them with max_streams - 1 others.
TEST(StreamEstimator, PredictsWhatARequestWillTakeWhenAllStreamsAreTaken) {
  const absl::Time now = absl::UnixEpoch();
  StreamEstimator estimator;
  estimator.SetSteps(Machine().Known(), 16);
  estimator.Learn({.prompt = 1000, .generated = 100},
                  {.prefill = absl::Milliseconds(120), .all = absl::Milliseconds(650)}, false, now);
  EXPECT_NEAR(Milliseconds(estimator.Cost({.prompt = 2000, .generated = 100})), 200 + 100 * (0.3 + 5.0 / 16), 30);
  EXPECT_NEAR(Milliseconds(*estimator.FastPrefill(2000, now)), 200, 30) << "one that need not be alone is no slower";
}

// A prompt of one token had a whole step to itself: 5 ms and a row.
TEST(StreamEstimator, DoesNotPredictLongPromptsFromShortOnes) {
  const absl::Time now = absl::UnixEpoch();
  StreamEstimator estimator;
  estimator.SetSteps(Machine().Known(), 16);
  for (int i = 0; i < 20; ++i) {
    estimator.Learn({.prompt = 1, .generated = 1}, {.prefill = absl::Milliseconds(5.1), .all = absl::Milliseconds(10)},
                    false, now);
  }
  EXPECT_LT(Milliseconds(*estimator.FastPrefill(1500, now)), 200);
}

TEST(StreamEstimator, FollowsPrefixesThatNeedNotBeReadAndStreamsThatEndEarly) {
  const absl::Time now = absl::UnixEpoch();
  StreamEstimator estimator;
  estimator.SetSteps(Machine().Known(), 16);
  const StreamTokens tokens = {.prompt = 1000, .generated = 1000};
  for (int i = 0; i < 10; ++i) {
    estimator.Learn(tokens, {.prefill = absl::Milliseconds(1), .all = absl::Milliseconds(7)}, false, now);
  }
  EXPECT_NEAR(Milliseconds(estimator.Cost(tokens)), 7, 0.1);
  EXPECT_NEAR(Milliseconds(*estimator.FastPrefill(1000, now)), 1, 0.1);
}

// Twice what it would take if all 16 streams shared its steps: fewer do, however many wait.
TEST(StreamEstimator, BelievesWhatRequestsTakeWhileOthersWait) {
  const absl::Time now = absl::UnixEpoch();
  StreamEstimator estimator;
  estimator.SetSteps(Machine().Known(), 16);
  const StreamTokens tokens = {.prompt = 100, .generated = 100};
  const absl::Duration shared = estimator.Cost(tokens);
  estimator.Learn(tokens, {.prefill = absl::Milliseconds(10), .all = 2 * shared}, true, now);
  EXPECT_EQ(estimator.Cost(tokens), 2 * shared);
}

}  // namespace longshort::core::step_cost_test
