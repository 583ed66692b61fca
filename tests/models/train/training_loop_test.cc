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

// After step N its only weight is -N, and the evaluation of step 4 is the best. A person presses Ctrl-C in the
// evaluation of step `interrupted`.
class CountingTask final : public TrainingTask {
 public:
  explicit CountingTask(int64_t interrupted = 0) : interrupted_(interrupted) {}

  const std::vector<NamedParameter>& parameters() const override { return parameters_; }
  double LossStep(int64_t /*step*/) override {
    parameters_.front().value.mutable_grad() = at::ones({1});
    return 1;
  }
  std::optional<HeldOutResult> HeldOut(absl::FunctionRef<bool()> stops) const override {
    const int64_t step = -std::lround(parameters_.front().value.item<double>());
    if (step == interrupted_) std::raise(SIGINT);
    if (stops()) return std::nullopt;
    evaluated_.push_back(step);
    return HeldOutResult{.score = -std::abs(static_cast<double>(step - 4))};
  }

  const std::vector<int64_t>& evaluated() const { return evaluated_; }
  int64_t steps_of_result() const { return -std::lround(result().front().value.item<double>()); }

 private:
  const int64_t interrupted_;
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

  absl::StatusOr<TrainingResult> Run(CountingTask& task) const { return RunTrainingLoop(options_, {}, {}, task); }

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

}  // namespace longshort::models::training_loop_test
