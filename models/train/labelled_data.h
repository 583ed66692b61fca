// Labelled examples on disk.
//
// Images: a folder for each class, named as the class, with image files in it. Texts: JSON Lines, one object a line.
//   {"label": "pos", "text": "a document"}
//   {"label": "same", "text": "a document", "second_text": "another"}    models of two documents
// Their labels, in sorted order, are the classes, counted from 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/tokenizer/tokenizer.h"
#include "models/weights/text_classifier_config.h"

namespace longshort::models {

// Checks that `labels`, sorted, are as many as the model has classes, and can stand in labels.txt. `name` is the
// data's.
absl::Status CheckLabelCount(absl::Span<const std::string> labels, int64_t classes, const std::string& name);

// The class of a label. Errors: INVALID_ARGUMENT naming `name` and the label if it is none of `labels`.
absl::StatusOr<int64_t> ClassOf(absl::Span<const std::string> labels, const std::string& label,
                                const std::string& name);

// labels.txt.
std::string LabelsText(absl::Span<const std::string> labels);

// Rows of probability 1 for each of `targets`: [targets, classes], float32.
at::Tensor CertainTargets(absl::Span<const int64_t> targets, int64_t classes);

struct ImageFile {
  std::string path;
  std::string bytes;  // as encoded
  int64_t target = 0;
};

// Reads the files of all class folders in `directory`, classes and files in the order of their names; what is no folder
// beside them is passed over. If `labels` is empty, it is set to the classes' names.
// Errors: NOT_FOUND if there is no such directory; INVALID_ARGUMENT for a class that is none of `labels`, or if there
// is no image; the file system's. All name the path.
absl::StatusOr<std::vector<ImageFile>> ReadImageFolder(const std::string& directory, std::vector<std::string>& labels);

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

// Labelled texts as a text classifier takes them.
struct TokenisedTexts {
  std::vector<TokenItem> items;
  std::vector<int64_t> targets;  // [items]: classes

  int64_t size() const { return static_cast<int64_t>(items.size()); }
  // Tokens of an item, all documents together.
  int64_t Tokens(int64_t item) const;
};

// Reads labelled texts and tokenises them; documents longer than the model takes are cut at their end, as a request
// with `truncate` is. If `labels` is empty, it is set to the texts'. `name` is the file's. Errors: those of reading and
// tokenising, and INVALID_ARGUMENT for an unknown label or a document without tokens; all name the file.
absl::StatusOr<TokenisedTexts> TokeniseTexts(std::string_view lines, const std::string& name,
                                             const TextClassifierConfig& config, const TextEncoder& tokenizer,
                                             std::vector<std::string>& labels);

}  // namespace longshort::models
