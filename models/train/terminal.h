// A training run's progress line, and its handling of Ctrl-C.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace longshort::models {

struct ProgressUnits {
  std::string name = "examples";  // the units that a step processes
  int64_t per_step = 1;
  std::string loss = "nats";   // the unit of the loss
  bool bits_per_byte = false;  // also print the loss in bits; a unit is then a byte
};

// The progress line of a run. On a terminal it is redrawn; elsewhere it is printed from time to time.
class TrainingProgress final {
 public:
  TrainingProgress(int64_t first_step, int64_t total_steps, ProgressUnits units);

  // `loss` is the loss of the step.
  void Report(int64_t steps_done, double loss, double gradient_norm, double learning_rate);
  // A run with a time limit estimates its last step again and again.
  void set_total_steps(int64_t steps) { total_steps_ = steps; }
  // Prints a separate line.
  // `part`: of the data.
  void ReportEvaluation(int64_t steps_done, const std::string& part, const std::string& figure);

 private:
  bool terminal_;
  int64_t first_step_, total_steps_;
  ProgressUnits units_;
  absl::Time started_, last_shown_ = absl::InfinitePast();
  double smoothed_loss_ = 0;
};

// Lets a long run poll for Ctrl-C and SIGTERM. During its lifetime, the first SIGINT or SIGTERM only sets received();
// the second, of either kind, ends the process. Signals that were ignored before stay ignored.
// REQUIRES: at most one object exists at a time.
class StopSignal final {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool received() const;
};

}  // namespace longshort::models
