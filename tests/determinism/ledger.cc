#include "tests/determinism/ledger.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace longshort {
namespace {

void AddRow(std::string& text, const std::string& kind, const Ledger::Line& line) {
  absl::StrAppendFormat(&text, "%-18s %7d %10d %14d (%5.1f %%) %13d %20.1e\n", kind, line.cases, line.cut_short,
                        line.identical, 100.0 * static_cast<double>(line.identical) / static_cast<double>(line.cases),
                        line.other_tokens, line.largest);
}

}  // namespace

void Ledger::Add(const std::string& kind, const Difference& difference, bool whole) {
  const std::lock_guard lock(mutex_);
  Line& line = lines_[kind];
  ++line.cases;
  line.cut_short += !whole;
  line.identical += difference.identical;
  line.other_tokens += difference.first_other_token.has_value();
  line.largest = std::max(line.largest, difference.largest);
}

std::map<std::string, Ledger::Line> Ledger::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

Ledger::Line Ledger::Sum() const {
  Line sum;
  for (const auto& [kind, line] : lines()) {
    sum.cases += line.cases;
    sum.cut_short += line.cut_short;
    sum.identical += line.identical;
    sum.other_tokens += line.other_tokens;
    sum.largest = std::max(sum.largest, line.largest);
  }
  return sum;
}

std::string Ledger::Text() const {
  std::string text = absl::StrFormat("%-18s %7s %10s %24s %13s %20s\n", "kind", "cases", "cut short", "bit-identical",
                                     "other tokens", "largest difference");
  for (const auto& [kind, line] : lines()) AddRow(text, kind, line);
  AddRow(text, "all", Sum());
  return text;
}

}  // namespace longshort
