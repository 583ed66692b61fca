#include "clients/cpp/class_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cpp/text_table.h"

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

}  // namespace

std::string ClassName(const v1::ClassProbability& entry) {
  return entry.label().empty() ? absl::StrCat("class ", entry.index()) : entry.label();
}

void WriteClassTable(const std::string& heading, const v1::Classification& classification, Terminal& terminal) {
  std::vector<TextRow> rows;
  for (const v1::ClassProbability& entry : classification.classes()) {
    TextRow row = {ClassName(entry), absl::StrFormat("%6.2f %%", 100 * entry.probability())};
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

}  // namespace longshort
