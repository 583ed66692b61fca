// Files of secrets, and of those who have them.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace longshort {

// Reads the whole file, which `option` ("--tls-key") has named. Errors: INVALID_ARGUMENT that begins with
// "--OPTION=FILE ", if it cannot be read, has more than `limit_bytes`, or users other than its owner and group may use
// it.
absl::StatusOr<std::string> ReadSecretFile(const std::string& option, const std::string& path, size_t limit_bytes);

}  // namespace longshort
