// Messages for scripts.
#pragma once

#include <ostream>

#include "google/protobuf/message.h"

namespace longshort {

// Writes the message as one line of JSON and flushes: protobuf's JSON form with the proto's field names, fields at
// their default value included. 64-bit integers are strings and bytes are base64, as that form has them.
void WriteJsonLine(const google::protobuf::Message& message, std::ostream& output);

}  // namespace longshort
