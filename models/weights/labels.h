// labels.txt: the names of a classifier's classes, one a line, in the order of the classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort {

// `name` stands for the file in errors; the last line may end without a newline.
// Errors: INVALID_ARGUMENT if there are not `classes` lines, or one is empty, or not UTF-8.
absl::StatusOr<std::vector<std::string>> ParseLabels(std::string_view text, int64_t classes, const std::string& name);

}  // namespace longshort
