// Writes protobuf messages as lines of JSON, for scripts.
#pragma once

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "longshort/v1/models.pb.h"
#include "longshort/v1/types.pb.h"

namespace longshort::client {

// Replaces each byte that is not part of a UTF-8 character by U+FFFD.
std::string ValidUtf8(absl::string_view bytes);

// Writes the message as one line of JSON and flushes. Uses protobuf's JSON mapping (64-bit integers are strings, bytes
// are base64) with the proto's field names, and includes fields with default values.
void WriteJsonLine(const google::protobuf::Message& message, std::ostream& output);

// The same, with the field "name" first: the file or document. Applies ValidUtf8 to the name.
void WriteNamedJsonLine(const std::string& name, const google::protobuf::Message& message, std::ostream& output);

// The same, with the result's origin after the name: `model`, if not null, and the fingerprint and precision of
// `weights` (from GetModel), if set. Omits empty lists.
void WriteAnswerJsonLine(const std::string& name, const v1::Model& weights, const v1::ModelSelector* model,
                         const google::protobuf::Message& message, std::ostream& output);

// {"name": ..., "error": {"code": ..., "message": ...}}
void WriteErrorJsonLine(const std::string& name, const v1::ItemError& error, std::ostream& output);

}  // namespace longshort::client
