#include "models/train/training_loop.h"

#include <cmath>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ATen/Functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/temporary_directory.h"

namespace longshort::models::training_loop_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// After step N its only weight is -N, and the evaluation of step 4 is the best, that of step 6 on the validation part.
// A person presses Ctrl-C in the evaluation of step `interrupted`.
class CountingTask final : public TrainingTask {
 public:
  explicit CountingTask(int64_t interrupted = 0, bool has_validation = false)
      : interrupted_(interrupted), has_validation_(has_validation) {}

  const std::vector<NamedParameter>& parameters() const override { return parameters_; }
  double LossStep(int64_t /*step*/) override {
    parameters_.front().value.mutable_grad() = at::ones({1});
    return 1;
  }
  std::optional<HeldOutResult> HeldOut(absl::FunctionRef<bool()> stops) const override {
    const int64_t step = steps_of_result();
    if (step == interrupted_) std::raise(SIGINT);
    if (stops()) return std::nullopt;
    evaluated_.push_back(step);
    return HeldOutResult{.score = -std::abs(static_cast<double>(step - 4))};
  }
  bool has_validation() const override { return has_validation_; }
  std::optional<HeldOutResult> Validation(absl::FunctionRef<bool()> /*stops*/) const override {
    return HeldOutResult{.score = -std::abs(static_cast<double>(steps_of_result() - 6))};
  }

  const std::vector<int64_t>& evaluated() const { return evaluated_; }
  int64_t steps_of_result() const { return -std::lround(result().front().value.item<double>()); }

 private:
  const int64_t interrupted_;
  const bool has_validation_;
  std::vector<NamedParameter> parameters_ = {{"weight", at::zeros({1}).requires_grad_()}};
  mutable std::vector<int64_t> evaluated_;
};

class TrainingLoopTest : public ::testing::Test {
 protected:
  TrainingLoopTest() {
    options_.optimizer.peak_learning_rate = 1;  // AdamW then changes a weight of constant gradient by 1 a step
    options_.optimizer.warmup_steps = 0;
    options_.optimizer.final_fraction = 1;
    options_.optimizer.total_steps = 8;
    options_.held_out_interval = 2;
    options_.keep_best = true;
    options_.checkpoint_path = temporary_.path() + "/checkpoint";
  }

  absl::StatusOr<TrainingResult> Run(CountingTask& task, const RunSettings& settings = {}) const {
    return RunTrainingLoop(options_, settings, {}, task);
  }

  const TemporaryDirectory temporary_;
  LoopOptions options_;
};

TEST_F(TrainingLoopTest, CtrlCBreaksAnEvaluationOffAndTheNextRunMakesIt) {
  CountingTask interrupted(4);
  const auto stopped = Run(interrupted);
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(stopped.status().message(), HasSubstr("after step 4; its state is in " + options_.checkpoint_path));
  EXPECT_THAT(interrupted.evaluated(), ElementsAre(2));
  CountingTask resumed;
  const auto result = Run(resumed);
  ASSERT_TRUE(result.ok()) << result.status();
  // First the best weights so far, those of step 2; at the end those of the result.
  EXPECT_THAT(resumed.evaluated(), ElementsAre(2, 4, 6, 8, 4));
  EXPECT_EQ(resumed.steps_of_result(), 4) << "as without the stop";
}

TEST_F(TrainingLoopTest, CtrlCBreaksTheLastEvaluationOffUnlessTheRunWouldBeLost) {
  CountingTask interrupted(8);
  EXPECT_EQ(Run(interrupted).status().code(), absl::StatusCode::kCancelled);
  CountingTask resumed;
  EXPECT_TRUE(Run(resumed).ok());
  EXPECT_EQ(resumed.steps_of_result(), 4);
  options_.checkpoint_path.clear();
  CountingTask unsaved(8);
  const auto result = Run(unsaved);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->done);
}

TEST_F(TrainingLoopTest, AValidationPartChoosesTheWeightsAndTheHeldOutDataOnlyGiveFigures) {
  CountingTask task(/*interrupted=*/0, /*has_validation=*/true);
  const auto result = Run(task);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(task.steps_of_result(), 6) << "the held-out data would have chosen step 4";
  EXPECT_EQ(result->held_out.score, -2) << "of step 6 on the held-out data";
  options_.optimizer.total_steps = 9;
  CountingTask resumed(/*interrupted=*/0, /*has_validation=*/true);
  ASSERT_TRUE(Run(resumed).ok());
  EXPECT_EQ(resumed.steps_of_result(), 6) << "a run that is lengthened compares with the same part";
}

TEST_F(TrainingLoopTest, ARunContinuesWithAnotherNumberOfShardsAndSaysSo) {
  options_.stop_after_steps = 2;
  CountingTask stopped;
  ASSERT_TRUE(Run(stopped, {{"--shards", "1"}, {"--seed", "1"}}).ok());
  options_.stop_after_steps = 0;
  CountingTask other;
  EXPECT_EQ(Run(other, {{"--shards", "2"}, {"--seed", "2"}}).status().code(), absl::StatusCode::kFailedPrecondition);
  testing::internal::CaptureStderr();
  CountingTask resumed;
  const auto result = Run(resumed, {{"--shards", "2"}, {"--seed", "1"}});
  const std::string errors = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(errors, HasSubstr("resuming from"));
  EXPECT_THAT(errors, HasSubstr("the run has 2 shards now instead of 1"));
}

}  // namespace longshort::models::training_loop_test
