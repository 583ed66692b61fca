// What all trainers share: a run's options, and the way from a task to a model directory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/train/training_loop.h"

namespace longshort::models {

// command_options.cc defines the ranges of the numbers.
struct RunOptions {
  LoopOptions loop;
  int64_t batch = 8;   // examples or parallel streams of a step
  int64_t shards = 1;  // threads that share a batch, one core each; affects the result's rounding only
  uint64_t seed = 1;
  bool bfloat16_products = false;  // matrix products and convolutions in bfloat16, in training only
  std::string output_directory;    // the model directory
};

// The options that determine a run.
RunSettings SettingsOf(const RunOptions& options);

// Checks before a run that its files can be written. Errors: INVALID_ARGUMENT naming the option.
absl::Status CheckOutput(const RunOptions& options);

struct ModelRun {
  // All that determines the run.
  RunSettings settings;
  ProgressUnits units;
  std::string data_report;  // in lines, printed before the run
  // The end of the client's command that calls the model, and what is piped to it (next_steps.h).
  std::string call, input;
  std::function<absl::StatusOr<std::unique_ptr<TrainingTask>>()> make_task;
  // Writes the model directory with the task's result and this metadata.
  std::function<absl::Status(const std::vector<NamedParameter>& result, const std::map<std::string, std::string>&)>
      write;
};

// Trains, and writes the model directory unless the run is stopped before its last step.
// Errors: those of `run` and of RunTrainingLoop; FAILED_PRECONDITION if another run wrote the model there is, without
// --replace; INTERNAL if LibTorch fails.
absl::Status TrainModel(const RunOptions& options, const ModelRun& run);

}  // namespace longshort::models
