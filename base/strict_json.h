// JSON from untrusted files: bounded in depth and size, without duplicate keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace longshort {

struct JsonLimits {
  // Objects and arrays inside each other.
  int64_t depth = 16;
  // Keys, values, objects and arrays altogether: bounds the memory of the parsed document.
  int64_t elements = int64_t{1} << 20;
};

// Parses `text`, all of it, as one JSON object.
// Errors: INVALID_ARGUMENT, starting with `name`, for anything that is not a JSON object in UTF-8, a key that stands
// twice in one object (named), or a document over a limit.
absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, const std::string& name,
                                               const JsonLimits& limits = {});

// A string from a file as it may stand in an error message: in single quotes, escaped, cut at 100 bytes.
std::string QuoteForMessage(std::string_view text);

}  // namespace longshort
