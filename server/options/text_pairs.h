// Lists of keys and values as OpenTelemetry's environment variables have them: "key=value,key=value", percent-encoded.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort {

// In their order; empty members do not count, nor do spaces around keys and values.
// Errors: INVALID_ARGUMENT that completes the sentence "NAME ...".
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseTextPairs(std::string_view text);

}  // namespace longshort
