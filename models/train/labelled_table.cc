#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "models/train/labelled_texts.h"
#include "re2/re2.h"

namespace longshort::models {
namespace {

// A row of a table: fields may be quoted, and then contain separators, line ends, and quotes that are doubled. Lines
// end with "\n", "\r\n" or, in files of old Macs, "\r". Removes the row from `text`. Errors: INVALID_ARGUMENT for a
// quote that is not closed, or not doubled.
absl::StatusOr<TextRow> TakeRow(std::string_view& text, char separator, int64_t& line) {
  TextRow row(1);
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char character = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\n';
    const bool ends_line = character == '\n' || (character == '\r' && next != '\n');
    if (ends_line) ++line;
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
    } else if (!quoted && ends_line) {
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
  size_t count, text, label;
};

size_t IndexOf(const TextRow& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}

// Removes a first line "sep=;", by which spreadsheets name the separator. Returns the separator, nullopt if there is no
// such line.
std::optional<char> TakeSeparator(std::string_view& table, int64_t& line) {
  char separator = 0;
  re2::StringPiece rest(table.data(), table.size());
  if (!RE2::Consume(&rest, R"re((?i)"?sep=([^"\r\n])"?(?:\r\n?|\n|\z))re", &separator)) return std::nullopt;
  table.remove_prefix(table.size() - rest.size());
  ++line;
  return separator;
}

// Removes the first row from `table`. `line` is then the number of the next line.
absl::StatusOr<Columns> TakeColumns(std::string_view& table, char usual, const TextFormat& format, int64_t& line) {
  const std::string_view whole = table;
  const int64_t first_line = line;
  TextRow most;  // the names, split by the separator that gives most
  absl::Status error;
  for (const char separator : {usual, ',', ';', '\t', '|'}) {
    table = whole;
    line = first_line;
    absl::StatusOr<TextRow> names = TakeRow(table, separator, line);
    error.Update(names.status());
    if (!names.ok()) continue;
    const size_t count = names->size(), text = IndexOf(*names, format.text_column),
                 label = IndexOf(*names, format.label_column);
    if (text == count || label == count) {
      if (count > most.size()) most = *std::move(names);
      continue;
    }
    for (const size_t column : {text, label}) {
      if (std::count(names->begin(), names->end(), (*names)[column]) == 1) continue;
      return absl::InvalidArgumentError(absl::StrCat("the column ", QuotedLabel((*names)[column]), " stands twice"));
    }
    return Columns{.separator = separator, .count = count, .text = text, .label = label};
  }
  if (most.empty()) return error;
  std::vector<std::string> missing, options;
  for (const auto& [column, option] :
       {std::pair(format.text_column, "--text-column"), {format.label_column, "--label-column"}}) {
    if (IndexOf(most, column) < most.size()) continue;
    missing.push_back(QuotedLabel(column));
    options.push_back(option);
  }
  return absl::InvalidArgumentError(absl::StrCat("no column ", absl::StrJoin(missing, " or "), "; its first row has ",
                                                 QuotedLabels(most), "; name ", missing.size() == 1 ? "one" : "two",
                                                 " with ", absl::StrJoin(options, " and ")));
}

std::vector<std::string> LabelsIn(const std::string& field, const TextFormat& format) {
  if (format.problem != ProblemType::kMultiLabel) return {field};
  std::vector<std::string> labels;
  for (const absl::string_view label : absl::StrSplit(field, format.label_separator, absl::SkipWhitespace())) {
    labels.emplace_back(absl::StripAsciiWhitespace(label));
  }
  return labels;
}

bool IsBlank(const std::string& field) { return absl::StripAsciiWhitespace(field).empty(); }

}  // namespace

absl::StatusOr<std::vector<LabelledExample>> ParseLabelledTable(std::string_view table, char usual,
                                                                const TextFormat& format, const std::string& name) {
  int64_t line = 1;
  const char first_tried = TakeSeparator(table, line).value_or(usual);
  if (table.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": is empty; it must begin with a row of names"));
  }
  const std::string place_of_names = absl::StrCat(name, ":", line);
  const absl::StatusOr<Columns> columns = TakeColumns(table, first_tried, format, line);
  if (!columns.ok()) return Named(place_of_names, columns.status());
  std::vector<LabelledExample> examples;
  while (!table.empty()) {
    const std::string place = absl::StrCat(name, ":", line);
    absl::StatusOr<TextRow> row = TakeRow(table, columns->separator, line);
    if (!row.ok()) return Named(place, row.status());
    if (std::all_of(row->begin(), row->end(), IsBlank)) continue;
    if (row->size() != columns->count) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": has ", row->size(), row->size() == 1 ? " field" : " fields", ", but the first row has ",
          columns->count, "; put a field that contains ", QuotedLabel({columns->separator}), " in double quotes"));
    }
    examples.push_back({.labels = LabelsIn((*row)[columns->label], format), .place = place, .content = {}});
    examples.back().content.push_back(std::move((*row)[columns->text]));
  }
  return examples;
}

}  // namespace longshort::models
