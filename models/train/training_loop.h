// The training loop of all models: resume from a checkpoint, step, evaluate on the held-out data, save.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "models/train/model_writer.h"
#include "models/train/optimizer.h"
#include "models/train/parameters.h"
#include "models/train/terminal.h"

namespace longshort::models {

struct LoopOptions {
  OptimizerOptions optimizer;
  int64_t held_out_interval = 500;  // steps between evaluations on the held-out data; 0: never
  bool keep_best = false;           // whether the weights of the best evaluation are written, not the last ones
  int64_t checkpoint_interval = 100;
  // Step after which the run saves its checkpoint and stops; at once if that step was passed. 0: the last step.
  int64_t stop_after_steps = 0;
  // Training time of the whole run, after which it ends as after its last step. The learning rate then follows the
  // time.
  absl::Duration time_limit = absl::InfiniteDuration();
  std::string checkpoint_path;  // the run resumes from it if it exists; empty: none is kept
  // Whether a checkpoint and a model of another run are replaced. Otherwise they are an error.
  bool replace = false;
};

// An evaluation on the held-out data.
struct HeldOutResult {
  std::string figures;  // for example "1.8400 bits/byte over 304128 tokens"
  std::string details;  // in lines, for the end of a run; may be ""
  double score = 0;     // of the first figure: higher is better
  double loss = 0;      // decides between equal scores
};

// A model with its data.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  // All weights. Those that require gradients are trained.
  virtual const std::vector<NamedParameter>& parameters() const = 0;
  // The weights to evaluate and to write.
  virtual const std::vector<NamedParameter>& result() const { return parameters(); }
  // Computes the mean loss of step `step` (from 0) and leaves its gradients in the weights. Returns the loss.
  virtual double LossStep(int64_t step) = 0;
  // Called after the optimizer has changed the weights in step `step`.
  virtual void WeightsChanged(int64_t /*step*/) {}
  // The state that steps change, except the weights and the optimizer's means.
  virtual std::vector<NamedParameter> State() const { return {}; }
  // Evaluates result() on the held-out data. Returns nullopt if `stops()`, which it asks now and then, returns true.
  virtual std::optional<HeldOutResult> HeldOut(absl::FunctionRef<bool()> stops) const = 0;
  // Whether a validation part of the training data chooses the weights with keep_best, not the held-out data.
  virtual bool has_validation() const { return false; }
  // As HeldOut, on that part. REQUIRES: has_validation().
  virtual std::optional<HeldOutResult> Validation(absl::FunctionRef<bool()> /*stops*/) const { return std::nullopt; }
};

struct TrainingResult {
  bool done = false;       // whether the last step is done, or the time is over; else the run was stopped by an option
  HeldOutResult held_out;  // of the weights to write; empty if there was no evaluation
};

// The options in `optimizer` that determine a run.
RunSettings SettingsOf(const OptimizerOptions& optimizer);

// Checks before a run that it can write its checkpoint. Errors: INVALID_ARGUMENT naming the option.
absl::Status CheckCheckpoint(const LoopOptions& options);

// Runs `task` to the last step, to the time limit or to stop_after_steps. With keep_best, task.result() then has the
// weights of the best evaluation on the validation part, or else on the held-out data. A run that resumes from its
// checkpoint computes the same as one that was never stopped, unless its steps are changed or limited by time.
// `settings` contains all else that determines the weights of each step. Errors: those of the checkpoint; OUT_OF_RANGE
// if a gradient is not finite (the last checkpoint is then unchanged); CANCELLED after SIGINT or SIGTERM, once the
// current step is done and its checkpoint is saved. They break off an evaluation, unless no checkpoint is kept; the
// next run makes it again.
absl::StatusOr<TrainingResult> RunTrainingLoop(const LoopOptions& options, const RunSettings& settings,
                                               const ProgressUnits& units, TrainingTask& task);

}  // namespace longshort::models
