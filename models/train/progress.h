// One line that tells how a training run goes: redrawn on a terminal, printed now and then elsewhere.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace longshort {

class TrainingProgress final {
 public:
  TrainingProgress(int64_t first_step, int64_t total_steps, int64_t tokens_per_step);

  // `bits` is the step's loss in bits per byte.
  void Report(int64_t steps_done, double bits, double gradient_norm, double learning_rate);
  // A line of its own, for a held-out figure.
  void ReportHeldOut(int64_t steps_done, double bits, int64_t tokens);

 private:
  bool terminal_;
  int64_t first_step_, total_steps_, tokens_per_step_;
  absl::Time started_, last_shown_ = absl::InfinitePast();
  double smoothed_bits_ = 0;
};

}  // namespace longshort
