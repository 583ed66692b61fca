// Errors for invalid fields (field, value, rule), and the rule for names.
#pragma once

#include <algorithm>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace longshort::server {

// INVALID_ARGUMENT "sampling.top_p is 1.5; it must be in (0, 1]".
inline absl::Status FieldError(const std::string& field, const absl::AlphaNum& value, const std::string& limit) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; it must be ", limit));
}

// INVALID_ARGUMENT unless low <= value <= high. `field` makes the name; it is called only for an error.
inline absl::Status CheckFieldRange(absl::FunctionRef<std::string()> field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return FieldError(field(), value, absl::StrCat("in [", low, ", ", high, "]"));
}

// The rule for names that clients choose for themselves, their calls and their sessions. Logs and headers contain them
// unescaped.
inline constexpr char kNameRule[] = "1 to 128 letters, digits or any of \"._:-\"";
inline bool IsName(const std::string& text) {
  constexpr size_t kMaxBytes = 128;
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace longshort::server
