// Labelled examples on disk.
//
// Images: for each class, a folder of image files with the class's name. Texts: JSON Lines, one object per line.
//   {"label": "pos", "text": "a document"}
//   {"label": "same", "text": "a document", "second_text": "another"}    for models of two documents
// The sorted labels are the classes, counted from 0.
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

// Checks that the sorted `labels` are as many as the model's classes, and that labels.txt can hold them. `name` is the
// data's name in errors.
absl::Status CheckLabelCount(absl::Span<const std::string> labels, int64_t classes, const std::string& name);

// Returns the class of a label. Errors: INVALID_ARGUMENT naming `name` and the label if `labels` does not contain it.
absl::StatusOr<int64_t> ClassOf(absl::Span<const std::string> labels, const std::string& label,
                                const std::string& name);

// The content of labels.txt.
std::string LabelsText(absl::Span<const std::string> labels);

// One-hot rows for `targets`: [targets, classes], float32.
at::Tensor CertainTargets(absl::Span<const int64_t> targets, int64_t classes);

struct ImageFile {
  std::string path;
  std::string bytes;  // as encoded
  int64_t target = 0;
};

// Reads the files of all class folders in `directory`. Classes and files are in the order of their names. Entries of
// `directory` that are not folders are ignored. If `labels` is empty, it is set to the names of the classes.
// Errors: NOT_FOUND if the directory does not exist; INVALID_ARGUMENT for a class that `labels` does not contain, or if
// there is no image; those of the file system. All name the path.
absl::StatusOr<std::vector<ImageFile>> ReadImageFolder(const std::string& directory, std::vector<std::string>& labels);

struct LabelledText {
  std::string label;
  std::vector<std::string> documents;  // one or two
  std::string place;                   // for errors: the file, with the line if it has several texts
};

// The fields or columns of a text and its label.
struct TextColumns {
  std::string text = "text";
  std::string label = "label";
};

// How the lines of a JSON Lines file are read.
struct LabelledLines {
  TextColumns columns = {};
  // 2: the field "second_text" is the second document.
  int64_t documents = 1;
  // Other fields, and labels that are integers, are errors. Otherwise the fields are ignored.
  bool only_these = true;
};

// `name` is the file's name in errors. Empty lines are ignored.
// Errors: INVALID_ARGUMENT naming file, line and cause: not a JSON object, a missing or unknown field, or no line.
absl::StatusOr<std::vector<LabelledText>> ParseLabelledTexts(std::string_view lines, const LabelledLines& form,
                                                             const std::string& name);

// Errors: INVALID_ARGUMENT if there is no text, or naming a text whose label is not one line.
absl::Status CheckLabelledTexts(absl::Span<const LabelledText> texts, const std::string& name);

std::string_view WithoutByteOrderMark(std::string_view text);

// The distinct labels, sorted.
std::vector<std::string> LabelsOf(absl::Span<const LabelledText> texts);

// Labelled texts as the input of a text classifier.
struct TokenisedTexts {
  std::vector<TokenItem> items;
  std::vector<int64_t> targets;  // [items]: classes

  int64_t size() const { return static_cast<int64_t>(items.size()); }
  // Number of tokens of all documents of an item.
  int64_t Tokens(int64_t item) const;
};

// Tokenises labelled texts. A document that is longer than the model's maximum is cut at its end, as for a request with
// `truncate`. A pair is joined to one document if the model does that. Errors: those of tokenising; INVALID_ARGUMENT
// for a label that `labels` lacks, or a document without tokens. All name the text's place.
absl::StatusOr<TokenisedTexts> TokeniseTexts(absl::Span<const LabelledText> texts, const TextClassifierConfig& config,
                                             const TextEncoder& tokenizer, absl::Span<const std::string> labels);

}  // namespace longshort::models
