// Protobuf's JSON mapping (protobuf.dev/programming-guides/json), without the messages of google.protobuf that have a
// form of their own. Protobuf's reader accepts repeated keys and invalid UTF-8, and is many times slower.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/memory_meter.h"

namespace longshort::server {

// Reads a message, which must be empty. The meter counts what the message takes, and what reading it takes beside.
// Errors: the meter's; INVALID_ARGUMENT naming field and byte, for what is not JSON in UTF-8, repeats a key, has an
// unknown field, a value that its field cannot have, two fields of a oneof, or more than kMaxElements
// (server/call/message_size.h).
absl::Status ReadJson(std::string_view json, google::protobuf::Message& message, MemoryMeter& meter);

enum class JsonForm {
  kProtobuf,
  // As the Open Inference Protocol's REST form has messages: fields by their names in the contract, 64-bit integers as
  // numbers, and fields without presence also if they are unset.
  kPlain,
};
std::string WriteJson(const google::protobuf::Message& message, JsonForm form = JsonForm::kProtobuf);

}  // namespace longshort::server
