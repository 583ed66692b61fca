// How metrics and logs name the status of a call.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace longshort {

// The canonical name of a gRPC code: "OK", "INVALID_ARGUMENT", ...
inline std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

}  // namespace longshort
