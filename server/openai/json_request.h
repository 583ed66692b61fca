// The fields of a request's JSON object, with errors for the client: the field, its value and what it must be.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

namespace longshort::server {

inline constexpr char kJsonType[] = "application/json";

class JsonRequest final {
 public:
  // Errors: INVALID_ARGUMENT if the body is no JSON object, repeats a key, or is nested too deeply.
  static absl::StatusOr<JsonRequest> Parse(std::string_view body);

  // Errors: INVALID_ARGUMENT naming the first field that is not in `known`.
  absl::Status RefuseUnknown(absl::Span<const std::string_view> known) const;

  // The field's value; null if it is absent, or null.
  const nlohmann::json* Find(std::string_view field) const;
  // Set `value` to the field's, if it has one. Errors: INVALID_ARGUMENT.
  absl::Status Read(std::string_view field, bool& value) const;
  absl::Status Read(std::string_view field, int64_t& value) const;
  absl::Status Read(std::string_view field, double& value) const;
  absl::Status Read(std::string_view field, std::string& value) const;

 private:
  explicit JsonRequest(nlohmann::json document) : document_(std::move(document)) {}

  nlohmann::json document_;
};

// INVALID_ARGUMENT "max_tokens is "16"; it must be an integer". A list or an object is named by its kind.
absl::Status WrongJson(const std::string& field, const nlohmann::json& value, const std::string& wanted);

// Errors: WrongJson.
absl::StatusOr<int64_t> IntegerOf(const std::string& field, const nlohmann::json& value, const char* wanted);

// Appends a list of token ids. Errors: WrongJson.
absl::Status ReadTokenIds(const std::string& field, const nlohmann::json& list,
                          google::protobuf::RepeatedField<int32_t>& ids);

}  // namespace longshort::server
