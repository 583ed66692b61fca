// Text files in any encoding, read as UTF-8.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace longshort::models {

inline constexpr char kUtf8[] = "utf-8";

// Converts `text` from `encoding`, a name that iconv knows, to UTF-8. Text that is UTF-8 already is only checked.
// Errors: INVALID_ARGUMENT naming `name`, the line, and for text that is not UTF-8 the likely encoding.
absl::StatusOr<std::string> ToUtf8(std::string text, const std::string& encoding, const std::string& name);

}  // namespace longshort::models
