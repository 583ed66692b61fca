// The steps of a training run, whatever is trained: going on from a checkpoint, stepping, looking at the held-out data,
// saving.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/train/optimizer.h"
#include "models/train/parameters.h"
#include "models/train/terminal.h"

namespace longshort::models {

struct LoopOptions {
  OptimizerOptions optimizer;
  int64_t held_out_interval = 500;  // steps between looks at the held-out data; 0: never
  int64_t checkpoint_interval = 100;
  int64_t stop_after_steps = 0;  // stop at this step with a checkpoint, as a run in parts does, or at once if it was
                                 // passed; 0 goes to the end
  std::string checkpoint_path;   // gone on from if it is there; empty: none is kept
};

// What is trained.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  // All weights; those are trained that collect gradients.
  virtual const std::vector<NamedParameter>& parameters() const = 0;
  // Leaves the gradients of the mean loss of step `step` (from 0) in the weights. Returns that loss, in nats.
  virtual double LossStep(int64_t step) = 0;
  // After the optimizer has changed the weights in step `step`.
  virtual void WeightsChanged(int64_t /*step*/) {}
  // What changes from step to step beside the weights and the optimizer's means.
  virtual std::vector<NamedParameter> State() const { return {}; }
  // How well the weights do on the held-out data, as a phrase: "1.8400 bits/byte over 304128 tokens".
  virtual std::string HeldOut() const = 0;
};

// Everything in `optimizer` that decides a run's course, as text.
std::string SettingsOf(const OptimizerOptions& optimizer);

// Whether the run can keep its checkpoint, as far as it is known before. Errors: INVALID_ARGUMENT naming the option.
absl::Status CheckCheckpoint(const LoopOptions& options);

// Runs `task` to the last step or to stop_after_steps; returns whether it is done. A run that goes on from its
// checkpoint is the same as one never stopped. `settings` is all that decides it.
// Errors: those of the checkpoint, OUT_OF_RANGE if a gradient is not finite (then the last checkpoint is as it was);
// CANCELLED after SIGINT or SIGTERM, behind the step that was being done and with a checkpoint of it.
absl::StatusOr<bool> RunTrainingLoop(const LoopOptions& options, const std::string& settings,
                                     const ProgressUnits& units, TrainingTask& task);

}  // namespace longshort::models
