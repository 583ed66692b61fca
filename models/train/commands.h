// The commands of longshort-train: one for each kind of model.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace longshort::models {

// Each parses its options from `arguments`, then trains, or prints help if --help is given.
// Errors: INVALID_ARGUMENT naming an option, and those of the trainer.
absl::Status RunLanguageModelCommand(const std::vector<std::string>& arguments);
absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments);
absl::Status RunImageClassifierCommand(const std::vector<std::string>& arguments);

}  // namespace longshort::models
