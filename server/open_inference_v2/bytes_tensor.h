// The raw form of a tensor of BYTES: each element is its length in 4 bytes, little-endian, and then its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort::server {

// The elements, which `raw` has, in their order. Whatever `elements` says, no more is held than `raw` can be.
// Errors: INVALID_ARGUMENT, completing "the raw contents of document ...", unless there are so many and nothing else.
absl::StatusOr<std::vector<std::string_view>> ParseBytesTensor(std::string_view raw, int64_t elements);

// Writes one more element. REQUIRES: fewer than 4 GiB.
void AppendBytesElement(std::string_view element, std::string& raw);

}  // namespace longshort::server
