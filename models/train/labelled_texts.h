// Reads labelled texts from what users have: JSON Lines, a table (CSV, TSV), or a folder for each class.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/train/labelled_data.h"

namespace longshort::models {

inline constexpr char kUtf8[] = "utf-8";

// Converts `text` from `encoding`, a name that iconv knows, to UTF-8. Text that is UTF-8 already is only checked.
// Errors: INVALID_ARGUMENT naming `name`, the line, and for text that is not UTF-8 the likely encoding.
absl::StatusOr<std::string> ToUtf8(std::string text, const std::string& encoding, const std::string& name);

// How texts and their labels stand in a file.
struct TextFormat {
  // Fields of JSON Lines, or columns of a table.
  std::string text_column = "text";
  std::string label_column = "label";
  std::string label_separator = ",";  // between several labels in a field of a table
  std::string encoding = kUtf8;
  ProblemType problem = ProblemType::kSingleLabel;
  // 2: the field "second_text" is the second document. Only JSON Lines have it.
  int64_t documents = 1;
};

// Reads a folder of class folders whose files are texts, a table if the name ends with .csv or .tsv, or else JSON
// Lines. Errors: those of reading and of ToUtf8; INVALID_ARGUMENT if there is no text, or naming the file, the line and
// the cause.
absl::StatusOr<std::vector<LabelledExample>> ReadLabelledTexts(const std::string& path, const TextFormat& format);

// JSON Lines: {"label": "pos", "text": "a document"}. Other fields may have any value. A label is a string, an integer
// or a boolean; for several labels it is a list of them, which may be empty; for a regression it is a number. Empty
// lines are ignored. `name` is the file's name in errors.
absl::StatusOr<std::vector<LabelledExample>> ParseLabelledLines(std::string_view lines, const TextFormat& format,
                                                                const std::string& name);

// A table whose first row names the columns; a line "sep=;" may stand before it. Commas, semicolons or tabs separate
// its fields: the first of these with which the first row has both columns. `usual` is tried before the others.
absl::StatusOr<std::vector<LabelledExample>> ParseLabelledTable(std::string_view table, char usual,
                                                                const TextFormat& format, const std::string& name);

}  // namespace longshort::models
