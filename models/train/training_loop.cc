#include "models/train/training_loop.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"

namespace longshort::models {
namespace {

constexpr char kBestPrefix[] = "best.";  // of tensors' names in a checkpoint

// The weights with the best evaluation so far.
struct BestWeights {
  int64_t step = 0;  // the number of steps that were done; 0: none was evaluated
  double score = 0, loss = 0;
  std::vector<NamedParameter> weights;

  bool IsWorseThan(const HeldOutResult& other) const {
    return step == 0 || std::isnan(score) || other.score > score || (other.score == score && other.loss < loss);
  }
};

// The state of a run: its named tensors (weights, optimizer state, stream memory), and what is done.
// A checkpoint contains exactly this.
struct TrainingState {
  std::vector<NamedParameter> tensors;
  int64_t steps_done = 0;
  int64_t total_steps = 0;  // as planned when the checkpoint was written
  double seconds = 0;       // of training
  BestWeights best;
  // The options and data that determine the run. A run does not resume from a checkpoint with other settings, except
  // for the number of shards.
  RunSettings settings;
};

std::vector<NamedParameter> CopiesOf(const std::vector<NamedParameter>& tensors, const std::string& prefix = "") {
  std::vector<NamedParameter> copies;
  copies.reserve(tensors.size());
  for (const NamedParameter& tensor : tensors) copies.push_back({prefix + tensor.name, tensor.value.detach().clone()});
  return copies;
}

// Errors: those of the file system, naming `path`.
absl::Status SaveCheckpoint(const std::string& path, const TrainingState& state) {
  std::vector<at::Tensor> values;
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::vector<NamedParameter>& all) {
    for (const NamedParameter& tensor : all) {
      values.push_back(tensor.value.detach().contiguous());
      tensors.push_back(AsNamed(tensor.name, values.back()));
    }
  };
  add(state.tensors);
  std::map<std::string, std::string> metadata = {{"steps_done", absl::StrCat(state.steps_done)},
                                                 {"total_steps", absl::StrCat(state.total_steps)},
                                                 {"seconds", absl::StrCat(state.seconds)},
                                                 {"settings", SettingsText(state.settings)}};
  if (state.best.step > 0) {
    add(state.best.weights);
    metadata["best_step"] = absl::StrCat(state.best.step);
    metadata["best_score"] = absl::StrFormat("%.17g", state.best.score);
    metadata["best_loss"] = absl::StrFormat("%.17g", state.best.loss);
  }
  return WriteSafetensors(path, tensors, metadata);
}

// Copies the saved values into `state.tensors` and `state.best.weights`, and sets the other fields.
// Errors: NOT_FOUND if the file does not exist; FAILED_PRECONDITION, naming the difference, if it belongs to a run with
// other settings or tensors.
absl::Status LoadCheckpoint(const std::string& path, TrainingState& state) {
  LS_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const auto text = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  RunSettings settings = ParseSettings(text("settings"));
  if (const std::string difference = DifferenceOf(settings, state.settings); !difference.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": is the checkpoint of another run: ", difference,
                     "; give the options of that run, another --out or --checkpoint, or --replace to begin again"));
  }
  state.settings = std::move(settings);
  if (!absl::SimpleAtoi(text("steps_done"), &state.steps_done) || state.steps_done < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": steps_done is '", text("steps_done"), "', not a non-negative integer"));
  }
  if (!absl::SimpleAtoi(text("total_steps"), &state.total_steps) ||
      !absl::SimpleAtod(text("seconds"), &state.seconds) || !(state.seconds >= 0)) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": total_steps is '", text("total_steps"),
                                                      "' and seconds is '", text("seconds"), "', not numbers"));
  }
  std::vector<NamedParameter> tensors = state.tensors;
  if (absl::SimpleAtoi(text("best_step"), &state.best.step) &&
      absl::SimpleAtod(text("best_score"), &state.best.score) &&
      absl::SimpleAtod(text("best_loss"), &state.best.loss)) {
    tensors.insert(tensors.end(), state.best.weights.begin(), state.best.weights.end());
  } else {
    state.best = {};
  }
  const absl::Status copied = CopyStored(file, tensors);
  return absl::IsFailedPrecondition(copied) ? absl::FailedPreconditionError(absl::StrCat(path, ": ", copied.message()))
                                            : copied;
}

class TrainingLoop final {
 public:
  TrainingLoop(const LoopOptions& options, const RunSettings& settings, TrainingTask& task)
      : options_(options), task_(task), optimizer_(options.optimizer, task.parameters()) {
    state_.settings = settings;
    state_.tensors = task.parameters();
    for (NamedParameter& tensor : optimizer_.State()) state_.tensors.push_back(std::move(tensor));
  }

  absl::StatusOr<TrainingResult> Run(const ProgressUnits& units) {
    LS_RETURN_IF_ERROR(Resume());
    TrainingProgress progress(state_.steps_done, TotalSteps(), units);
    // Decided once a step: a time limit may pass at any time.
    for (bool last = IsDone(); !last;) {
      if (const int64_t stop = options_.stop_after_steps; stop > 0 && state_.steps_done >= stop) {
        absl::FPrintF(stderr, "stopped after step %d; to continue, run again with --checkpoint=%s\n", state_.steps_done,
                      options_.checkpoint_path);
        return TrainingResult{.done = false, .held_out = {}};
      }
      // Here, so that a run which was stopped before or in an evaluation makes it when it resumes.
      if (IsEvaluationDue()) {
        const std::optional<Evaluation> result = Evaluate(progress);
        if (!result) {
          LS_RETURN_IF_ERROR(Save());
          return Interrupted();
        }
        if (options_.keep_best) KeepIfBest(result->compared);
      }
      LS_RETURN_IF_ERROR(Step(progress));
      last = IsDone();
      const bool stop = state_.steps_done == options_.stop_after_steps;
      const bool interrupted = signal_.received() && !last;
      if (last || stop || interrupted || state_.steps_done % options_.checkpoint_interval == 0) {
        absl::Status saved = Save();
        if (!saved.ok() && !last) return saved;
        if (!saved.ok()) absl::FPrintF(stderr, "%s; the model is still written\n", saved.message());
      }
      if (interrupted) return Interrupted();
    }
    TrainingResult result{.done = true, .held_out = {}};
    if (options_.held_out_interval == 0) return result;
    const std::optional<Evaluation> last = Evaluate(progress);
    if (!last) return Interrupted();
    result.held_out = last->held_out;
    if (options_.keep_best && state_.best.step > 0 && !state_.best.IsWorseThan(last->compared)) {
      absl::FPrintF(stderr, "step %d was better on the %s: its weights are written\n", state_.best.step,
                    task_.has_validation() ? "validation part" : "held-out data");
      SetResult(state_.best.weights);
      const std::optional<HeldOutResult> of_best = task_.HeldOut(Stops());
      if (!of_best) return Interrupted();
      result.held_out = *of_best;
    }
    return result;
  }

 private:
  absl::Status Interrupted() const {
    if (options_.checkpoint_path.empty()) {
      return absl::CancelledError(absl::StrCat("stopped by a signal after step ", state_.steps_done,
                                               "; nothing is saved without --checkpoint"));
    }
    return absl::CancelledError(absl::StrCat(
        "stopped by a signal after step ", state_.steps_done, "; its state is in ", options_.checkpoint_path,
        "\nto continue, run the same command again; to write the model as it is, add --steps=", state_.steps_done));
  }

  bool IsEvaluationDue() const {
    return options_.held_out_interval > 0 && state_.steps_done > 0 &&
           state_.steps_done % options_.held_out_interval == 0;
  }

  struct Evaluation {
    HeldOutResult held_out;
    HeldOutResult compared;  // what keep_best compares
  };

  // Breaks an evaluation off after a signal, unless the run would be lost.
  std::function<bool()> Stops() const {
    return [this] { return signal_.received() && !options_.checkpoint_path.empty(); };
  }

  // Returns nullopt if a signal has broken the evaluation off.
  std::optional<Evaluation> Evaluate(TrainingProgress& progress) const {
    const std::optional<HeldOutResult> held_out = task_.HeldOut(Stops());
    if (!held_out) return std::nullopt;
    progress.ReportEvaluation(state_.steps_done, "held-out", held_out->figures);
    if (!task_.has_validation()) return Evaluation{*held_out, *held_out};
    const std::optional<HeldOutResult> validation = task_.Validation(Stops());
    if (!validation) return std::nullopt;
    progress.ReportEvaluation(state_.steps_done, "validation", validation->figures);
    return Evaluation{*held_out, *validation};
  }

  void SetResult(const std::vector<NamedParameter>& weights) {
    for (size_t i = 0; i < weights.size(); ++i) task_.result()[i].value.detach().copy_(weights[i].value);
  }

  // The held-out data may be others than before the stop.
  absl::Status EvaluateBestAgain() {
    const std::vector<NamedParameter> last = CopiesOf(task_.result());
    SetResult(state_.best.weights);
    const std::optional<HeldOutResult> result =
        task_.has_validation() ? task_.Validation(Stops()) : task_.HeldOut(Stops());
    if (!result) return Interrupted();
    state_.best.score = result->score;
    state_.best.loss = result->loss;
    SetResult(last);
    return absl::OkStatus();
  }

  void KeepIfBest(const HeldOutResult& result) {
    if (!state_.best.IsWorseThan(result)) return;
    state_.best = {.step = state_.steps_done,
                   .score = result.score,
                   .loss = result.loss,
                   .weights = CopiesOf(task_.result(), kBestPrefix)};
  }

  bool IsTimed() const { return options_.time_limit != absl::InfiniteDuration(); }
  absl::Duration TimeSpent() const { return absl::Seconds(state_.seconds) + (absl::Now() - started_); }

  bool IsDone() const {
    return state_.steps_done >= options_.optimizer.total_steps ||
           (state_.steps_done > 0 && TimeSpent() >= options_.time_limit);
  }

  // The number of the run's steps. With a time limit it is an estimate from the steps that are done.
  int64_t TotalSteps() const {
    const int64_t total = options_.optimizer.total_steps;
    if (!IsTimed() || state_.steps_done == 0) return total;
    const double steps = static_cast<double>(state_.steps_done) * absl::FDivDuration(options_.time_limit, TimeSpent());
    return steps >= static_cast<double>(total) ? total : std::max(state_.steps_done, static_cast<int64_t>(steps));
  }

  StepRates RatesOfStep(int64_t step) const {
    OptimizerOptions optimizer = options_.optimizer;
    optimizer.total_steps = std::max(TotalSteps(), step + 1);
    // The number of steps is not known before: the warm-up must not last until the end.
    if (IsTimed()) optimizer.warmup_steps = std::min(optimizer.warmup_steps, optimizer.total_steps / 10 + 1);
    return RatesOf(optimizer, step);
  }

  absl::Status Step(TrainingProgress& progress) {
    const int64_t step = state_.steps_done;
    const double loss = task_.LossStep(step);
    const StepRates rates = RatesOfStep(step);
    const double norm = optimizer_.Step(step, rates);
    if (!std::isfinite(norm)) {
      return absl::OutOfRangeError(absl::StrCat("step ", step + 1, ": the gradient is not finite (loss ", loss,
                                                "); start again with a lower --learning-rate"));
    }
    task_.WeightsChanged(step);
    ++state_.steps_done;
    progress.set_total_steps(IsDone() ? state_.steps_done : TotalSteps());
    progress.Report(state_.steps_done, loss, norm, rates.learning_rate);
    return absl::OkStatus();
  }

  // A task's own state may consist of new tensors after each step.
  TrainingState WholeState() const {
    TrainingState state = state_;
    state.total_steps = TotalSteps();
    state.seconds = absl::ToDoubleSeconds(TimeSpent());
    for (NamedParameter& tensor : task_.State()) state.tensors.push_back(std::move(tensor));
    return state;
  }

  absl::Status Save() const {
    return options_.checkpoint_path.empty() ? absl::OkStatus() : SaveCheckpoint(options_.checkpoint_path, WholeState());
  }

  absl::Status Resume() {
    if (options_.checkpoint_path.empty()) return absl::OkStatus();
    TrainingState state = WholeState();
    state.best.weights = CopiesOf(task_.result(), kBestPrefix);
    const absl::Status loaded = LoadCheckpoint(options_.checkpoint_path, state);
    if (absl::IsNotFound(loaded)) return absl::OkStatus();
    if (options_.replace && absl::IsFailedPrecondition(loaded)) {
      absl::FPrintF(stderr, "--replace: %s is of another run and will be replaced\n", options_.checkpoint_path);
      return absl::OkStatus();
    }
    LS_RETURN_IF_ERROR(loaded);
    state_.steps_done = state.steps_done;
    state_.seconds = state.seconds;
    if (options_.keep_best && state.best.step > 0) {
      state_.best = std::move(state.best);
      LS_RETURN_IF_ERROR(EvaluateBestAgain());
    }
    absl::FPrintF(stderr, "resuming from %s after step %d\n", options_.checkpoint_path, state_.steps_done);
    if (state.settings[kShardsSetting] != state_.settings[kShardsSetting]) {
      absl::FPrintF(stderr, "the run has %s shards now instead of %s; this changes only the rounding\n",
                    state_.settings[kShardsSetting], state.settings[kShardsSetting]);
    }
    if (const int64_t total = options_.optimizer.total_steps; !IsTimed() && state.total_steps != total) {
      absl::FPrintF(stderr, "the run has %d steps now instead of %d; the learning rate follows the new number\n", total,
                    state.total_steps);
    }
    return absl::OkStatus();
  }

  const LoopOptions& options_;
  TrainingTask& task_;
  Optimizer optimizer_;
  TrainingState state_;                     // without the task's own state
  const absl::Time started_ = absl::Now();  // of this process's part of the run
  const StopSignal signal_;
};

}  // namespace

RunSettings SettingsOf(const OptimizerOptions& optimizer) {
  RunSettings settings = {{"--learning-rate", absl::StrCat(optimizer.peak_learning_rate)},
                          {"--warmup-steps", absl::StrCat(optimizer.warmup_steps)},
                          {"--weight-decay", absl::StrCat(optimizer.weight_decay)},
                          {"final_fraction", absl::StrCat(optimizer.final_fraction)},
                          {"gradient_norm", absl::StrCat(optimizer.gradient_norm)}};
  if (optimizer.schedule == Schedule::kOneCycle) settings["--schedule"] = "one-cycle";
  return settings;
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

absl::StatusOr<TrainingResult> RunTrainingLoop(const LoopOptions& options, const RunSettings& settings,
                                               const ProgressUnits& units, TrainingTask& task) {
  if (options.time_limit == absl::InfiniteDuration() &&
      options.optimizer.warmup_steps >= options.optimizer.total_steps) {
    absl::FPrintF(stderr, "--warmup-steps=%d is not below --steps=%d: the learning rate never reaches its peak\n",
                  options.optimizer.warmup_steps, options.optimizer.total_steps);
  }
  return TrainingLoop(options, settings, task).Run(units);
}

}  // namespace longshort::models
