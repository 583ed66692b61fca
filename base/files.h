// Files: written so that a reader finds the old content or the new, never a part; and files of secrets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort {

// Writes `pieces`, one after the other, to a temporary file beside `path`, flushes it to disk, and renames it to
// `path`. On an error `path` is as it was and no temporary file is left. Errors: the system's, naming the file.
absl::Status WriteFileAtomically(const std::string& path, absl::Span<const std::string_view> pieces);

// Reads the whole file, which `option` ("--tls-key") has named. Errors: INVALID_ARGUMENT that begins with
// "--OPTION=FILE ", if it cannot be read, has more than `limit_bytes`, or users other than its owner and group may use
// it.
absl::StatusOr<std::string> ReadSecretFile(const std::string& option, const std::string& path, size_t limit_bytes);

}  // namespace longshort
