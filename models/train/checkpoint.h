// A training run's state on disk: what is needed to go on exactly where it stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/train/named_parameter.h"

namespace longshort {

// What a run is at: its tensors by name (weights, optimizer state, stream memory), and the number of steps done.
struct TrainingState {
  std::vector<NamedParameter> tensors;
  int64_t steps_done = 0;
  // Everything else that decides the run (options, data), as text: a run with other settings is not continued.
  std::string settings;
};

// Errors: those of the file system, naming `path`.
absl::Status SaveCheckpoint(const std::string& path, const TrainingState& state);

// Copies the saved values into `state.tensors` and sets `state.steps_done`.
// Errors: NOT_FOUND if there is no file; FAILED_PRECONDITION if it is of a run with other settings or tensors, naming
// them.
absl::Status LoadCheckpoint(const std::string& path, TrainingState& state);

}  // namespace longshort
