// Writing a file so that a reader finds the old content or the new, never a part.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace longshort {

// Writes `pieces`, one after the other, to a temporary file beside `path`, flushes it to disk, and renames it to
// `path`. On an error `path` is as it was and no temporary file is left. Errors: the system's, naming the file.
absl::Status WriteFileAtomically(const std::string& path, absl::Span<const std::string_view> pieces);

}  // namespace longshort
