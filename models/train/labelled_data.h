// Labels, classes and targets of examples, labels in messages, and folders of images: for each class a folder with the
// class's name.
// The sorted labels are the classes, counted from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/classifier.h"

namespace longshort::models {

struct LabelledExample {
  // One for a single label; any number, sorted, for several labels; a number in digits for a regression.
  std::vector<std::string> labels;
  std::string place;                 // for errors: the file, with the line if it has several examples
  std::vector<std::string> content;  // one or two documents, or the bytes of an encoded image
};

// The error with `place` before its message.
absl::Status Named(const std::string& place, const absl::Status& error);

// What a model should answer for an example.
struct Target {
  std::vector<int64_t> classes;  // one for a single label, any number for several labels, none for a regression
  float number = 0;              // of a regression
};

// What the data are, for the report before a run and for the figures of held-out examples.
struct DataDescription {
  ProblemType problem = ProblemType::kSingleLabel;
  std::vector<std::string> labels;
  std::vector<Target> train, held_out;
  std::vector<Target> validation = {};  // empty: the held-out examples choose the best weights
  std::vector<std::string> notes;       // more sentences for the report
};

// Checks that the sorted `labels` are as many as the model's classes, and that labels.txt can hold them. `name` is the
// data's name in errors.
absl::Status CheckLabelCount(absl::Span<const std::string> labels, int64_t classes, const std::string& name);

// Checks that there are two labels at least, and that no labels differ only by space, case (in any script), Unicode's
// normal forms (a letter with its mark as one character or two), or the form of a number. Errors: INVALID_ARGUMENT
// naming `name` and the labels.
absl::Status CheckLabelsDiffer(absl::Span<const std::string> labels, ProblemType problem, const std::string& name);

// The content of labels.txt.
std::string LabelsText(absl::Span<const std::string> labels);

// The targets of examples. Errors: INVALID_ARGUMENT naming the place and the label that `labels` does not contain, or
// that is not a number of a regression.
absl::StatusOr<std::vector<Target>> TargetsOf(absl::Span<const LabelledExample> examples,
                                              absl::Span<const std::string> labels, ProblemType problem);

// The mean and the standard deviation of a regression's numbers. A model learns (number - mean) / deviation.
struct NumberScale {
  double mean = 0;
  double deviation = 1;
};
NumberScale ScaleOf(absl::Span<const Target> targets);

// Reads the files of all class folders in `directory`. Classes and files are in the order of their names. Entries of
// `directory` that are not folders are ignored.
// Errors: NOT_FOUND if the directory does not exist; INVALID_ARGUMENT if there is no file; those of the file system.
// All name the path.
absl::StatusOr<std::vector<LabelledExample>> ReadClassFolders(const std::string& directory);

// The beginning of UTF-8 text: at most `bytes` bytes, up to the end of a character.
std::string_view Beginning(std::string_view text, size_t bytes);

// A label in a message: UTF-8 with escapes for control characters, cut at 60 bytes.
std::string ShownLabel(const std::string& label);
// The same in single quotes.
std::string QuotedLabel(const std::string& label);
// "'a', 'b' and 2 more", as Listed; "no label" if there is none.
std::string QuotedLabels(absl::Span<const std::string> labels);

// The first 20 of `parts`, separated by commas, and how many more there are.
std::string Listed(std::vector<std::string> parts);

}  // namespace longshort::models
