// `longshort-server describe MODEL_OR_CONFIG`: what a model costs, from its config.json alone.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::server {

// What to print. `arguments`: those behind "describe": --help, or one that names a model directory, a config.json, or a
// preset if no such file is there.
// Errors: INVALID_ARGUMENT for other arguments, NOT_FOUND for a model that is not there, those of DescribeConfig.
absl::StatusOr<std::string> DescribeCommand(const std::vector<std::string>& arguments);

// Prints it on standard output, or on standard error what is wrong. Returns the exit code: 0, or 1.
int RunDescribe(const std::vector<std::string>& arguments);

}  // namespace longshort::server
