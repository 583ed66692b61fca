// A training run at the terminal: its progress line, and Ctrl-C.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace longshort::models {

struct ProgressUnits {
  std::string name = "examples";  // what a step works on
  int64_t per_step = 1;
  bool bits_per_byte = false;  // show the loss in bits too: a unit is a byte
};

// The progress line of a run: redrawn on a terminal, printed now and then elsewhere.
class TrainingProgress final {
 public:
  TrainingProgress(int64_t first_step, int64_t total_steps, ProgressUnits units);

  // `loss` is the step's, in nats.
  void Report(int64_t steps_done, double loss, double gradient_norm, double learning_rate);
  // A line of its own.
  void ReportHeldOut(int64_t steps_done, const std::string& figure);

 private:
  bool terminal_;
  int64_t first_step_, total_steps_;
  ProgressUnits units_;
  absl::Time started_, last_shown_ = absl::InfinitePast();
  double smoothed_loss_ = 0;
};

// Ctrl-C and SIGTERM as a question that a long run asks now and then. While it lives, the first SIGINT or SIGTERM is
// only noted; the second, of either kind, ends the process. Signals that were ignored before stay ignored. One at a
// time.
class StopSignal final {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool received() const;
};

}  // namespace longshort::models
