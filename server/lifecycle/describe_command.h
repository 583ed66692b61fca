// `longshort-server describe MODEL_OR_CONFIG`: prints a model's costs, computed from its config.json.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::server {

// Returns the text to print. `arguments` are those after "describe": an option, or the name of a model directory, of a
// config.json, or, if no such file exists, of a preset.
// Errors: INVALID_ARGUMENT for other arguments, NOT_FOUND if the model does not exist, those of DescribeConfig.
absl::StatusOr<std::string> DescribeCommand(const std::vector<std::string>& arguments);

// Prints the text to standard output, or an error to standard error. Returns the exit code: 0, or 1 after an error.
int RunDescribe(const std::vector<std::string>& arguments);

}  // namespace longshort::server
