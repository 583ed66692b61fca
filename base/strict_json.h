// JSON from untrusted files, with limits on depth and size and without duplicate keys. JsonFields reads its fields,
// with errors for operators. DumpJson writes JSON.
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
  // Nesting depth of objects and arrays.
  int64_t depth = 16;
  // Total number of keys, values, objects and arrays. It bounds the memory of the parsed document.
  int64_t elements = int64_t{1} << 20;
};

// Parses all of `text` as one JSON object.
// Errors: INVALID_ARGUMENT, starting with `name`, if it is not a JSON object in UTF-8, repeats a key in an object
// (naming the key), or exceeds a limit.
absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text, const std::string& name,
                                               const JsonLimits& limits = {});

// JSON text on one line. Bytes of strings that are not UTF-8 become U+FFFD.
std::string DumpJson(const nlohmann::ordered_json& json);

// Quotes a string from a file for an error message: in single quotes, escaped, cut at 100 bytes.
std::string QuoteForMessage(std::string_view text);

// An object of a config.json. All errors are INVALID_ARGUMENT and name the file, the field and the value.
class JsonFields final {
 public:
  // `name` is the file's name in errors.
  static absl::StatusOr<JsonFields> Parse(std::string_view text, const std::string& name);

  // Returns an error naming the first field that is not in `known`, if there is one.
  absl::Status RefuseUnknown(absl::Span<const std::string_view> known) const;

  bool Has(std::string_view field) const { return document_.contains(field); }

  absl::StatusOr<int64_t> Integer(std::string_view field) const;
  absl::StatusOr<bool> Boolean(std::string_view field) const;
  // Any finite number.
  absl::StatusOr<double> Number(std::string_view field) const;
  absl::StatusOr<std::string> Text(std::string_view field) const;
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view field) const;
  absl::StatusOr<std::vector<double>> Numbers(std::string_view field) const;
  // The fields of a nested object. Errors name both.
  absl::StatusOr<JsonFields> Object(std::string_view field) const;
  // The index of the field's string in `choices`.
  absl::StatusOr<size_t> Choice(std::string_view field, absl::Span<const std::string_view> choices) const;

  // An error for an existing field whose value is not as `wanted` describes, for example "in 1..8".
  absl::Status OutOfRange(std::string_view field, std::string_view wanted) const;

 private:
  JsonFields(nlohmann::json document, std::string name) : document_(std::move(document)), name_(std::move(name)) {}

  absl::StatusOr<const nlohmann::json*> Find(std::string_view field) const;
  absl::Status Wrong(std::string_view field, const nlohmann::json& value, std::string_view wanted) const;

  nlohmann::json document_;
  std::string name_;
};

}  // namespace longshort
