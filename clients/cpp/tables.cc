#include "clients/cpp/tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort {
namespace {

// Characters of the bar for probability 1.
constexpr int kBarLength = 20;

// In eighths of a character; at least one, so that every class has a bar.
std::string Bar(float probability) {
  constexpr std::array kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = std::max(1, static_cast<int>(std::lround(probability * kBarLength * 8)));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) absl::StrAppend(&bar, "█");
  return absl::StrCat(bar, kEighths[static_cast<size_t>(eighths % 8)]);
}

// How many UTF-8 characters there are: about as many columns as the text takes at a terminal.
size_t CountCharacters(const std::string& text) {
  const auto begins_character = [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0U) != 0x80U; };
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace

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

void WriteClassTable(const std::string& heading, const v1::Classification& classification, Terminal& terminal) {
  std::vector<TextRow> rows;
  for (const v1::ClassProbability& entry : classification.classes()) {
    TextRow row = {entry.label().empty() ? absl::StrCat("class ", entry.index()) : entry.label(),
                   absl::StrFormat("%6.2f %%", 100 * entry.probability())};
    if (terminal.output_is_terminal) row.push_back(Bar(entry.probability()));
    rows.push_back(row);
  }
  terminal.output << heading << "\n";
  WriteTable(rows, terminal.output, 2);
  if (classification.logits_size() > 0) {
    terminal.output << "  logits by class:";
    for (const float logit : classification.logits()) terminal.output << absl::StrFormat(" %.6g", logit);
    terminal.output << "\n";
  }
  terminal.output << std::flush;
}

std::string TokenLine(const v1::TokenLogProbability& token) {
  std::string line = absl::StrFormat("%9.4f %6d  %s\n", token.log_probability(), token.id(), QuoteBytes(token.raw()));
  for (const v1::TokenLogProbability& alternative : token.alternatives()) {
    absl::StrAppend(&line, "    ", TokenLine(alternative));
  }
  return line;
}

std::string QuoteBytes(const std::string& bytes) {
  // A byte model's token may be one byte of a longer character: shown as it is, it would spoil the terminal's text.
  const bool partial_character = bytes.size() == 1 && static_cast<unsigned char>(bytes.front()) >= 0x80;
  return absl::StrCat("\"", partial_character ? absl::CHexEscape(bytes) : absl::Utf8SafeCHexEscape(bytes), "\"");
}

}  // namespace longshort
