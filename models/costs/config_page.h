// docs/config.md: the fields of every family's config.json, from the tables that the parsers read by.
#pragma once

#include <string>

namespace longshort::models {

// The page as Markdown.
std::string ConfigPage();

}  // namespace longshort::models
