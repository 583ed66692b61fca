// Reads labelled texts from what users have: JSON Lines, a table (CSV, TSV), or a folder for each class.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/train/labelled_data.h"

namespace longshort::models {

// Reads a folder of class folders whose files are texts, a table if the name ends with .csv or .tsv (its first row
// names the columns), or else JSON Lines, whose other fields are ignored and whose labels may be integers. Errors:
// those of reading; INVALID_ARGUMENT naming the file, the line, and the columns that there are.
absl::StatusOr<std::vector<LabelledText>> ReadLabelledTexts(const std::string& path, const TextColumns& columns);

// For each example, its label and the parts of its content, which the examples own.
struct Example {
  std::string_view label;
  std::vector<std::string_view> content;
};
// Chooses about `fraction` of the examples of each class to hold out, at least one, by a hash of each example's
// content, so that equal examples stay together. Returns for each example whether it is held out. Errors:
// INVALID_ARGUMENT naming the class if it has fewer than two different examples.
absl::StatusOr<std::vector<bool>> ChooseHeldOut(const std::vector<Example>& examples, double fraction,
                                                const std::string& name);

// Moves those examples from `train` to `held_out`. `example_of` returns the Example of an element of `train`.
template <typename Item, typename ExampleOf>
absl::Status HoldOut(std::vector<Item>& train, std::vector<Item>& held_out, double fraction, const std::string& name,
                     ExampleOf example_of) {
  std::vector<Example> examples;
  examples.reserve(train.size());
  for (const Item& item : train) examples.push_back(example_of(item));
  const absl::StatusOr<std::vector<bool>> is_held_out = ChooseHeldOut(examples, fraction, name);
  if (!is_held_out.ok()) return is_held_out.status();
  size_t kept = 0;
  for (size_t i = 0; i < train.size(); ++i) {
    if ((*is_held_out)[i]) {
      held_out.push_back(std::move(train[i]));
    } else {
      std::swap(train[kept++], train[i]);
    }
  }
  train.resize(kept);
  return absl::OkStatus();
}

}  // namespace longshort::models
