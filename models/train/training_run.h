// What all trainers share: a run's options, the way from a task to a model directory, and what a user does then.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/train/training_loop.h"

namespace longshort::models {

// commands.cc defines the ranges of the numbers.
struct RunOptions {
  LoopOptions loop;
  int64_t batch = 8;   // examples or parallel streams of a step
  int64_t shards = 1;  // threads that share a batch, one core each; affects the result's rounding only
  uint64_t seed = 1;
  bool official_weights = false;   // whether initial weights are distributed as in the family's official code
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
  // The end of the client's command that calls the model, and what is piped to it (NextSteps).
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

// In lines: where the model is, its figures, and the commands that serve it and call it. One that is not in a folder
// REPOSITORY/NAME/VERSION is moved to one first. `call` is the end of the client's command; it is for a shell, as is
// `input`, which is piped to it unless it is empty. `program` is how this program was called: the server and the client
// are named in the same way if they lie beside it.
std::string NextSteps(const std::string& directory, const std::string& held_out, const std::string& program,
                      const std::string& input, const std::string& call);

// A shell's command that prints the beginning of a text: at most 100 bytes of its first line, up to the end of a word.
// "" if that is empty.
std::string InputCommand(std::string_view text);

// `word` as a word of a POSIX shell: in single quotes if it needs them.
std::string ShellWord(const std::string& word);

}  // namespace longshort::models
