// Reads labelled texts from what users have: JSON Lines, a table (CSV, TSV), or a folder for each class.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "models/train/labelled_data.h"

namespace longshort::models {

// The fields or columns of a text and its label.
struct TextColumns {
  std::string text = "text";
  std::string label = "label";
};

// Reads a folder of class folders whose files are texts, a table if the name ends with .csv or .tsv (its first row
// names the columns), or else JSON Lines, whose other fields are ignored and whose labels may be integers. Errors:
// those of reading; INVALID_ARGUMENT naming the file, the line, and the columns that there are.
absl::StatusOr<std::vector<LabelledText>> ReadLabelledTexts(const std::string& path, const TextColumns& columns);

// Takes about `fraction` of the examples of each class out of `targets`, at least one, by a hash of each example's
// content, so that equal examples stay together. Returns the indices to train on and those that are held out.
// Errors: INVALID_ARGUMENT naming the class if it has fewer than two different examples.
struct Split {
  std::vector<size_t> train, held_out;
};
absl::StatusOr<Split> SplitExamples(const std::vector<std::pair<std::string, std::string>>& labels_and_contents,
                                    double fraction, const std::string& name);

}  // namespace longshort::models
