// Labelled documents, read from JSON Lines: one object a line.
//
//   {"label": "pos", "text": "a document"}
//   {"label": "same", "text": "a document", "second_text": "another"}    models of two documents
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort {

struct LabelledText {
  std::string label;
  std::vector<std::string> documents;  // one or two
  int64_t line = 0;                    // from 1
};

// `documents` is 1 or 2; `name` stands for the file in errors. Empty lines are passed over.
// Errors: INVALID_ARGUMENT naming file, line and what is wrong: no JSON object, a missing or unknown field, no line at
// all.
absl::StatusOr<std::vector<LabelledText>> ParseLabelledTexts(std::string_view lines, int64_t documents,
                                                             const std::string& name);

// The labels that occur, sorted, each once.
std::vector<std::string> LabelsOf(absl::Span<const LabelledText> texts);

}  // namespace longshort
