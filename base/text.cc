#include "base/text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

// In UTF-8 characters: roughly the width at a terminal.
size_t Width(const std::string& cell) {
  const auto begins_character = [](char byte) { return (byte & 0xC0) != 0x80; };
  return static_cast<size_t>(std::count_if(cell.begin(), cell.end(), begins_character));
}

}  // namespace

std::string TextTable(const std::vector<TextRow>& rows, size_t indent) {
  std::vector<size_t> widths;
  for (const TextRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], Width(row[column]));
    }
  }
  std::string table;
  for (const TextRow& row : rows) {
    table.append(indent, ' ');
    for (size_t column = 0; column + 1 < row.size(); ++column) {
      table.append(row[column]).append(widths[column] - Width(row[column]) + 2, ' ');
    }
    absl::StrAppend(&table, row.back(), "\n");
  }
  return table;
}

}  // namespace longshort
