// Messages as the protocol's REST form writes them: fields by their names in the contract, 64-bit integers as numbers.
// Protobuf's own mapping writes other names, and strings.
#pragma once

#include <google/protobuf/message.h>

#include "nlohmann/json.hpp"

namespace longshort::server {

// Fields without presence are always written, messages only if they are set. REQUIRES: no maps and no bytes.
nlohmann::ordered_json PlainJson(const google::protobuf::Message& message);

}  // namespace longshort::server
