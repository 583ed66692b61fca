// Tables for people.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace longshort {

using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces between them; `indent` spaces before each row.
void WriteTable(const std::vector<TextRow>& rows, std::ostream& output, int indent = 0);

}  // namespace longshort
