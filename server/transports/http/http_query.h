// The query of a URL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/percent_encoding.h"

namespace longshort::server {

// The value of the first parameter `name`; nullopt if there is none, or it is not coded correctly.
std::optional<std::string> QueryParameter(std::string_view query, std::string_view name);

}  // namespace longshort::server
