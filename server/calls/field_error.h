// Errors of wrong requests: the field, its value and the rule; and the rules for names.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longshort::server {

// INVALID_ARGUMENT "sampling.top_p is 1.5; it must be in (0, 1]".
inline absl::Status FieldError(const std::string& field, const absl::AlphaNum& value, const std::string& limit) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; it must be ", limit));
}

// INVALID_ARGUMENT unless low <= value <= high. `field` makes the name, which only an error needs.
inline absl::Status CheckFieldRange(absl::FunctionRef<std::string()> field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return FieldError(field(), value, absl::StrCat("in [", low, ", ", high, "]"));
}

// Client's text as it can stand in a message: at most 64 bytes, control characters escaped, in quotes.
std::string Quoted(const std::string& text);

// Of names that clients choose: of themselves, their calls, their sessions. They stand in logs and headers as they are.
inline constexpr char kNameRule[] = "1 to 128 letters, digits or any of \"._:-\"";
bool IsName(const std::string& text);

}  // namespace longshort::server
