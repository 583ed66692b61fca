// The query of a URL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace longshort::server {

// "%41" becomes "A"; with `plus_is_space`, "+" becomes " ", as in queries. nullopt for "%" without two digits.
std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_space = false);

// The value of the first parameter `name`; nullopt if there is none, or it is not coded correctly.
std::optional<std::string> QueryParameter(std::string_view query, std::string_view name);

}  // namespace longshort::server
