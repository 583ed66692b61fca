// The commands of longshort-train: one for each kind of model.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace longshort::models {

// Each reads its options from `arguments`, prints help if they ask for it, or trains. Errors: INVALID_ARGUMENT naming
// an option, and those of the trainer.
absl::Status RunLanguageModelCommand(const std::vector<std::string>& arguments);
absl::Status RunTextClassifierCommand(const std::vector<std::string>& arguments);
absl::Status RunImageClassifierCommand(const std::vector<std::string>& arguments);

}  // namespace longshort::models
