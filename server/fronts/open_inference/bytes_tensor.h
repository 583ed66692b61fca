// The raw form of a BYTES tensor: each element is its length, 4 bytes little-endian, followed by its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::server {

// Views of the elements in `raw`, in order. Memory use is bounded by the size of `raw`, whatever `elements` is.
// Errors: INVALID_ARGUMENT that completes "the raw contents of input ...", unless `raw` has exactly `elements`
// elements.
absl::StatusOr<std::vector<std::string_view>> ParseBytesTensor(std::string_view raw, int64_t elements);

// Appends one element. REQUIRES: it is shorter than 4 GiB.
void AppendBytesElement(std::string_view element, std::string& raw);

}  // namespace longshort::server
