// Protobuf's JSON mapping.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

// Reads a message. Errors: INVALID_ARGUMENT for what is not JSON, repeats a key, has an unknown field, or a value that
// its field cannot have.
absl::Status ReadJson(std::string_view json, google::protobuf::Message& message);

// Writes a message. Errors: INTERNAL.
absl::StatusOr<std::string> WriteJson(const google::protobuf::Message& message);

}  // namespace longshort::server
