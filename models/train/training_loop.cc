#include "models/train/training_loop.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/status_macros.h"
#include "models/train/checkpoint.h"

namespace longshort {
namespace {

class TrainingLoop final {
 public:
  TrainingLoop(const LoopOptions& options, const std::string& settings, TrainingTask& task)
      : options_(options), task_(task), optimizer_(options.optimizer, task.parameters()) {
    state_.settings = settings;
    state_.tensors = task.parameters();
    for (NamedParameter& tensor : optimizer_.State()) state_.tensors.push_back(std::move(tensor));
  }

  absl::StatusOr<bool> Run(const ProgressUnits& units) {
    LS_RETURN_IF_ERROR(Resume());
    const int64_t total = options_.optimizer.total_steps;
    TrainingProgress progress(state_.steps_done, total, units);
    while (state_.steps_done < total) {
      LS_RETURN_IF_ERROR(Step(progress));
      const bool last = state_.steps_done == total;
      const bool stop = state_.steps_done == options_.stop_after_steps;
      if (last || stop || state_.steps_done % options_.checkpoint_interval == 0) LS_RETURN_IF_ERROR(Save());
      if (stop && !last) return false;
      if (options_.held_out_interval > 0 && (last || state_.steps_done % options_.held_out_interval == 0)) {
        progress.ReportHeldOut(state_.steps_done, task_.HeldOut());
      }
    }
    return true;
  }

 private:
  absl::Status Step(TrainingProgress& progress) {
    const int64_t step = state_.steps_done;
    const double loss = task_.LossStep(step);
    const double norm = optimizer_.Step(step);
    if (!std::isfinite(norm)) {
      return absl::OutOfRangeError(absl::StrCat("step ", step + 1, ": the gradient is not finite (loss ", loss,
                                                " nats); lower --learning-rate and go on from the checkpoint"));
    }
    task_.WeightsChanged(step);
    ++state_.steps_done;
    progress.Report(state_.steps_done, loss, norm, LearningRate(options_.optimizer, step));
    return absl::OkStatus();
  }

  // The tensors of a task's own state may be new ones after each step.
  TrainingState WholeState() const {
    TrainingState state = state_;
    for (NamedParameter& tensor : task_.State()) state.tensors.push_back(std::move(tensor));
    return state;
  }

  absl::Status Save() const {
    return options_.checkpoint_path.empty() ? absl::OkStatus() : SaveCheckpoint(options_.checkpoint_path, WholeState());
  }

  absl::Status Resume() {
    if (options_.checkpoint_path.empty()) return absl::OkStatus();
    TrainingState state = WholeState();
    const absl::Status loaded = LoadCheckpoint(options_.checkpoint_path, state);
    if (absl::IsNotFound(loaded)) return absl::OkStatus();
    LS_RETURN_IF_ERROR(loaded);
    state_.steps_done = state.steps_done;
    absl::FPrintF(stderr, "going on from %s after step %d\n", options_.checkpoint_path, state_.steps_done);
    return absl::OkStatus();
  }

  const LoopOptions& options_;
  TrainingTask& task_;
  Optimizer optimizer_;
  TrainingState state_;  // but for the task's own
};

}  // namespace

std::string SettingsOf(const OptimizerOptions& optimizer) {
  return absl::StrCat("steps=", optimizer.total_steps, " rate=", optimizer.peak_learning_rate,
                      " warmup=", optimizer.warmup_steps, " final=", optimizer.final_fraction,
                      " decay=", optimizer.weight_decay, " clip=", optimizer.gradient_norm);
}

absl::StatusOr<bool> RunTrainingLoop(const LoopOptions& options, const std::string& settings,
                                     const ProgressUnits& units, TrainingTask& task) {
  return TrainingLoop(options, settings, task).Run(units);
}

}  // namespace longshort
