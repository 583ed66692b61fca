// Tables for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace longshort {

using TextRow = std::vector<std::string>;

// A line for each row, indented. Columns are as wide as their longest cell in UTF-8 characters, and two spaces apart.
// REQUIRES: no row is empty.
std::string TextTable(const std::vector<TextRow>& rows, size_t indent = 0);

}  // namespace longshort
