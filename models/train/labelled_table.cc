#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/train/labelled_texts.h"

namespace longshort::models {
namespace {

using TableRow = std::vector<std::string>;

// A row of a table: fields may be quoted, and then contain separators, line ends, and quotes that are doubled.
// Removes the row from `text`. Errors: INVALID_ARGUMENT for a quote that is not closed, or not doubled.
absl::StatusOr<TableRow> TakeRow(std::string_view& text, char separator, int64_t& line) {
  TableRow row(1);
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char character = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\n';
    if (character == '\n') ++line;
    if (quoted && character == '"') {
      if (next == '"') {
        row.back().push_back('"');
        ++i;
      } else if (next == separator || next == '\n' || next == '\r') {
        quoted = false;
      } else {
        return absl::InvalidArgumentError("a quote within a quoted field must be doubled: \"\"");
      }
    } else if (!quoted && character == '"' && row.back().empty()) {
      quoted = true;
    } else if (!quoted && character == separator) {
      row.emplace_back();
    } else if (!quoted && character == '\n') {
      ++i;
      break;
    } else {
      row.back().push_back(character);
    }
  }
  if (quoted) return absl::InvalidArgumentError("a quote is not closed");
  text.remove_prefix(i);
  if (row.back().ends_with('\r')) row.back().pop_back();
  return row;
}

struct Columns {
  char separator;
  TableRow names;
  size_t text, label;
};

std::optional<size_t> IndexOf(const TableRow& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

// Removes the first row from `table`.
absl::StatusOr<Columns> TakeColumns(std::string_view& table, char usual, const TextFormat& format,
                                    const std::string& name, int64_t& line) {
  TableRow most;  // the names, split by the separator that gives most
  for (const char separator : {usual, ',', ';', '\t'}) {
    std::string_view rest = table;
    int64_t rest_line = line;
    absl::StatusOr<TableRow> names = TakeRow(rest, separator, rest_line);
    if (!names.ok()) continue;
    const std::optional<size_t> text = IndexOf(*names, format.text_column),
                                label = IndexOf(*names, format.label_column);
    if (text && label) {
      table = rest;
      line = rest_line;
      return Columns{.separator = separator, .names = *std::move(names), .text = *text, .label = *label};
    }
    if (names->size() > most.size()) most = *std::move(names);
  }
  const bool has_text = IndexOf(most, format.text_column).has_value();
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": no column '", has_text ? format.label_column : format.text_column, "'; its first row has ",
      absl::StrJoin(most, ", ", [](std::string* out, const std::string& one) { out->append(QuoteForMessage(one)); }),
      "; name one with ", has_text ? "--label-column" : "--text-column"));
}

std::vector<std::string> LabelsIn(const std::string& field, const TextFormat& format) {
  if (format.problem != ProblemType::kMultiLabel) return {field};
  std::vector<std::string> labels;
  for (const absl::string_view label : absl::StrSplit(field, format.label_separator, absl::SkipWhitespace())) {
    labels.emplace_back(absl::StripAsciiWhitespace(label));
  }
  return labels;
}

}  // namespace

absl::StatusOr<std::vector<LabelledExample>> ParseLabelledTable(std::string_view table, char usual,
                                                                const TextFormat& format, const std::string& name) {
  if (table.empty())
    return absl::InvalidArgumentError(absl::StrCat(name, ": is empty; it must begin with a row of names"));
  int64_t line = 1;
  LS_ASSIGN_OR_RETURN(const Columns columns, TakeColumns(table, usual, format, name, line));
  std::vector<LabelledExample> examples;
  while (!table.empty()) {
    const std::string place = absl::StrCat(name, ":", line);
    absl::StatusOr<TableRow> row = TakeRow(table, columns.separator, line);
    if (row.ok() && row->size() == 1 && row->front().empty()) continue;
    if (row.ok() && row->size() != columns.names.size()) {
      row = absl::InvalidArgumentError(
          absl::StrCat("has ", row->size(), " fields, the first row ", columns.names.size()));
    }
    if (!row.ok()) return absl::InvalidArgumentError(absl::StrCat(place, ": ", row.status().message()));
    examples.push_back({.labels = LabelsIn((*row)[columns.label], format), .place = place, .content = {}});
    examples.back().content.push_back(std::move((*row)[columns.text]));
  }
  return examples;
}

}  // namespace longshort::models
