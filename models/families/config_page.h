// docs/config.md: the fields of config.json for every architecture, from the parsers' tables.
#pragma once

#include <string>

namespace longshort::models {

// Returns the page as Markdown.
std::string ConfigPage();

}  // namespace longshort::models
