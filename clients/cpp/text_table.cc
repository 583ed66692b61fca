#include "clients/cpp/text_table.h"

#include <algorithm>

#include "clients/cpp/utf8_text.h"

namespace longshort {

void WriteTable(const std::vector<TextRow>& rows, std::ostream& output, int indent) {
  std::vector<size_t> widths;
  for (const TextRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], CountCharacters(row[column]));
    }
  }
  for (const TextRow& row : rows) {
    output << std::string(static_cast<size_t>(indent), ' ');
    for (size_t column = 0; column + 1 < row.size(); ++column) {
      output << row[column] << std::string(widths[column] - CountCharacters(row[column]) + 2, ' ');
    }
    output << row.back() << "\n";
  }
}

}  // namespace longshort
