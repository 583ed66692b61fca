// Messages for scripts.
#pragma once

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "longshort/v1/models.pb.h"
#include "longshort/v1/types.pb.h"

namespace longshort::client {

// The bytes (a file's name, a class's label, ...) with U+FFFD for each that is not part of a UTF-8 character.
std::string ValidUtf8(absl::string_view bytes);

// Writes the message as one line of JSON and flushes: protobuf's JSON form with the proto's field names, fields at
// their default value included. 64-bit integers are strings and bytes are base64, as that form has them.
void WriteJsonLine(const google::protobuf::Message& message, std::ostream& output);

// The same with "name" before the message's fields: which of many files or documents it is about. Bytes of the name
// that are not UTF-8 become U+FFFD.
void WriteNamedJsonLine(const std::string& name, const google::protobuf::Message& message, std::ostream& output);

// The same, with the origin of the result behind the name: the model that answered, if it is given, and the weights'
// fingerprint and precision from GetModel, each if it is set. Leaves out empty lists.
void WriteAnswerJsonLine(const std::string& name, const v1::Model& weights, const v1::ModelSelector* model,
                         const google::protobuf::Message& message, std::ostream& output);

// {"name": ..., "error": {"code": ..., "message": ...}}
void WriteErrorJsonLine(const std::string& name, const v1::ItemError& error, std::ostream& output);

}  // namespace longshort::client
