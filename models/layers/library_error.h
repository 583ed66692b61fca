// What LibTorch throws, as a status.
#pragma once

#include <exception>
#include <string_view>

#include "absl/status/status.h"

namespace longshort {

// "LibTorch failed <doing>: <what it said>", without the addresses of the stack that it adds: clients get this text.
// RESOURCE_EXHAUSTED if there was no memory, else INTERNAL.
absl::Status LibraryError(std::string_view doing, const std::exception& error);

}  // namespace longshort
