// JSON from untrusted files: bounded in depth and size, without duplicate keys; and its fields, read one by one with
// the errors that an operator needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

// An object of a config.json. All errors are INVALID_ARGUMENT and name the file, the field and the value.
class JsonFields final {
 public:
  // `name` stands for the file in errors.
  static absl::StatusOr<JsonFields> Parse(std::string_view text, const std::string& name);

  // An error naming the first field that is not among `known`.
  absl::Status RefuseUnknown(absl::Span<const std::string_view> known) const;

  bool Has(std::string_view field) const { return document_.contains(field); }

  absl::StatusOr<int64_t> Integer(std::string_view field) const;
  absl::StatusOr<bool> Boolean(std::string_view field) const;
  // Any finite number.
  absl::StatusOr<double> Number(std::string_view field) const;
  absl::StatusOr<std::string> Text(std::string_view field) const;
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view field) const;
  absl::StatusOr<std::vector<double>> Numbers(std::string_view field) const;
  // The fields of an object within; errors name both.
  absl::StatusOr<JsonFields> Object(std::string_view field) const;
  // The index in `choices` of the field's string.
  absl::StatusOr<size_t> Choice(std::string_view field, absl::Span<const std::string_view> choices) const;

  // An error saying that a field, which is there, must be what `wanted` says: "in 1..8".
  absl::Status OutOfRange(std::string_view field, std::string_view wanted) const;

 private:
  JsonFields(nlohmann::json document, std::string name) : document_(std::move(document)), name_(std::move(name)) {}

  absl::StatusOr<const nlohmann::json*> Find(std::string_view field) const;
  absl::Status Wrong(std::string_view field, const nlohmann::json& value, std::string_view wanted) const;

  nlohmann::json document_;
  std::string name_;
};

}  // namespace longshort
