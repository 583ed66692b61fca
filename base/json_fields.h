// The fields of a config.json, read one by one with the errors that an operator needs.
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

// All errors are INVALID_ARGUMENT and name the file, the field and the value.
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
