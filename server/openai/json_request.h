// The fields of a request's JSON object, with errors for the client: the field, its value and what it must be.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/memory_meter.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"

namespace longshort::server {

inline constexpr char kJsonType[] = "application/json";

// Moves its texts into a message.
class JsonRequest final {
 public:
  // The meter counts the document until the destructor frees it, and what is moved into a message beyond that.
  JsonRequest(MemoryMeter& meter, absl::Span<const JsonListLimit> lists) : meter_(meter), lists_(lists) {}
  JsonRequest(const JsonRequest&) = delete;
  JsonRequest& operator=(const JsonRequest&) = delete;
  ~JsonRequest();

  // Errors: INVALID_ARGUMENT if the body is no JSON object, repeats a key, is nested too deeply, or has too long a
  // list; the meter's.
  absl::Status Parse(std::string_view body);

  // The field's value; null if it is absent, or null.
  nlohmann::json* Find(std::string_view field);
  // Set `value` to the field's, if it has one. Errors: INVALID_ARGUMENT.
  absl::Status Read(std::string_view field, bool& value);
  absl::Status Read(std::string_view field, int64_t& value);
  absl::Status Read(std::string_view field, double& value);
  absl::Status Read(std::string_view field, std::string& value);

  // These add a part to a message. Errors: WrongJson if the value is not of this kind; the meter's.
  absl::Status MoveText(const std::string& name, nlohmann::json& text, const char* wanted, std::string& to);
  absl::Status ReadTokenIds(const std::string& name, const nlohmann::json& list,
                            google::protobuf::RepeatedField<int32_t>& ids);
  // Counts a submessage or a map entry of a message, beside its texts and ids.
  absl::Status CountPart() { return meter_.Add(kPartBytes); }

 private:
  static constexpr int64_t kPartBytes = 64;

  MemoryMeter& meter_;
  const absl::Span<const JsonListLimit> lists_;
  nlohmann::json document_;
  int64_t document_bytes_ = 0;
};

// INVALID_ARGUMENT "max_tokens is "16"; it must be an integer". A list or an object is named by its kind.
absl::Status WrongJson(const std::string& field, const nlohmann::json& value, const std::string& wanted);

// A number without a fraction is a whole number, also as 16.0 or 4e0. Errors: WrongJson.
absl::StatusOr<int64_t> IntegerOf(const std::string& field, const nlohmann::json& value, const char* wanted);

}  // namespace longshort::server
