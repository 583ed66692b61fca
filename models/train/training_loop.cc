#include "models/train/training_loop.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "c10/core/GradMode.h"
#include "models/weights/safetensors.h"
#include "models/weights/tensors.h"

namespace longshort::models {
namespace {

// The state of a run: its named tensors (weights, optimizer state, stream memory), and the number of steps done.
// A checkpoint contains exactly this.
struct TrainingState {
  std::vector<NamedParameter> tensors;
  int64_t steps_done = 0;
  // The options and data that determine the run, as text. A run does not resume from a checkpoint with other settings.
  std::string settings;
};

// Errors: those of the file system, naming `path`.
absl::Status SaveCheckpoint(const std::string& path, const TrainingState& state) {
  std::vector<at::Tensor> values;
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& tensor : state.tensors) {
    values.push_back(tensor.value.detach().contiguous());
    tensors.push_back(
        {.name = tensor.name,
         .type = DataType::kF32,
         .shape = values.back().sizes().vec(),
         .data = {static_cast<const std::byte*>(values.back().const_data_ptr()), values.back().nbytes()}});
  }
  return WriteSafetensors(path, tensors,
                          {{"steps_done", absl::StrCat(state.steps_done)}, {"settings", state.settings}});
}

// Copies the saved values into `state.tensors` and sets `state.steps_done`.
// Errors: NOT_FOUND if the file does not exist; FAILED_PRECONDITION, naming the difference, if it belongs to a run with
// other settings or tensors.
absl::Status LoadCheckpoint(const std::string& path, TrainingState& state) {
  LS_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const auto text = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (text("settings") != state.settings) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": belongs to a run with other settings (",
                                                      text("settings"), "), not (", state.settings,
                                                      "); give another --checkpoint"));
  }
  if (!absl::SimpleAtoi(text("steps_done"), &state.steps_done) || state.steps_done < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": steps_done is '", text("steps_done"), "', not a non-negative integer"));
  }
  const c10::NoGradGuard no_grad;
  for (NamedParameter& tensor : state.tensors) {
    const StoredTensor* const saved = file.Find(tensor.name);
    const auto shape = tensor.value.sizes();
    if (saved == nullptr || !std::equal(shape.begin(), shape.end(), saved->shape.begin(), saved->shape.end())) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": tensor ", tensor.name, " is missing or has another shape"));
    }
    at::Tensor value = at::empty(shape);
    LS_RETURN_IF_ERROR(
        ReadAsFloat32(file, *saved, {value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel())}));
    tensor.value.copy_(value);
  }
  return absl::OkStatus();
}

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
      if (const int64_t stop = options_.stop_after_steps; stop > 0 && state_.steps_done >= stop) {
        absl::FPrintF(stderr, "stopped after step %d; to continue, run again with --checkpoint=%s\n", state_.steps_done,
                      options_.checkpoint_path);
        return false;
      }
      LS_RETURN_IF_ERROR(Step(progress));
      const bool last = state_.steps_done == total;
      const bool stop = state_.steps_done == options_.stop_after_steps;
      const bool interrupted = signal_.received() && !last;
      if (last || stop || interrupted || state_.steps_done % options_.checkpoint_interval == 0) {
        absl::Status saved = Save();
        if (!saved.ok() && !last) return saved;
        if (!saved.ok()) absl::FPrintF(stderr, "%s; the model is still written\n", saved.message());
      }
      if (interrupted) return Interrupted();
      if (options_.held_out_interval > 0 && (last || state_.steps_done % options_.held_out_interval == 0)) {
        progress.ReportHeldOut(state_.steps_done, task_.HeldOut());
      }
    }
    return true;
  }

 private:
  absl::Status Interrupted() const {
    return absl::CancelledError(
        absl::StrCat("stopped by a signal after step ", state_.steps_done,
                     options_.checkpoint_path.empty()
                         ? "; nothing is saved without --checkpoint"
                         : absl::StrCat("; to continue, run again with --checkpoint=", options_.checkpoint_path)));
  }

  absl::Status Step(TrainingProgress& progress) {
    const int64_t step = state_.steps_done;
    const double loss = task_.LossStep(step);
    const double norm = optimizer_.Step(step);
    if (!std::isfinite(norm)) {
      return absl::OutOfRangeError(absl::StrCat("step ", step + 1, ": the gradient is not finite (loss ", loss,
                                                " nats); start again with a lower --learning-rate"));
    }
    task_.WeightsChanged(step);
    ++state_.steps_done;
    progress.Report(state_.steps_done, loss, norm, LearningRate(options_.optimizer, step));
    return absl::OkStatus();
  }

  // A task's own state may consist of new tensors after each step.
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
    absl::FPrintF(stderr, "resuming from %s after step %d\n", options_.checkpoint_path, state_.steps_done);
    return absl::OkStatus();
  }

  const LoopOptions& options_;
  TrainingTask& task_;
  Optimizer optimizer_;
  TrainingState state_;  // without the task's own state
  const StopSignal signal_;
};

}  // namespace

std::string SettingsOf(const OptimizerOptions& optimizer) {
  return absl::StrCat("steps=", optimizer.total_steps, " rate=", optimizer.peak_learning_rate,
                      " warmup=", optimizer.warmup_steps, " final=", optimizer.final_fraction,
                      " decay=", optimizer.weight_decay, " clip=", optimizer.gradient_norm);
}

absl::Status CheckCheckpoint(const LoopOptions& options) {
  if (options.checkpoint_path.empty()) {
    if (options.stop_after_steps == 0) return absl::OkStatus();
    return absl::InvalidArgumentError("--stop-after-steps requires --checkpoint, from which a later run continues");
  }
  const std::string folder = std::filesystem::absolute(options.checkpoint_path).parent_path().string();
  if (access(folder.c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--checkpoint=", options.checkpoint_path, " cannot be written: ", std::strerror(errno)));
}

absl::StatusOr<bool> RunTrainingLoop(const LoopOptions& options, const std::string& settings,
                                     const ProgressUnits& units, TrainingTask& task) {
  return TrainingLoop(options, settings, task).Run(units);
}

}  // namespace longshort::models
