// Divides labelled examples into those that are trained on and those that are held out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/train/labelled_data.h"

namespace longshort::models {

struct Division {
  ProblemType problem = ProblemType::kSingleLabel;
  double held_out_fraction = 0.1;
  // The part of the examples that are not held out; 0: there is no validation part.
  double validation_fraction = 0;
  // Labels of fewer different examples are left out, in single-label data with their examples.
  int64_t min_examples = 1;
};

struct DividedData {
  std::vector<LabelledExample> train, held_out, validation;
  DataDescription description;  // its labels are the distinct ones of the given `train`, sorted; none for a regression
};

// Divides `train`, unless there are examples in `held_out`: about held_out_fraction of each class, at least one, and
// for several labels and regressions of all examples. Takes the validation part from the rest in the same way. A hash
// of the content chooses, so that equal examples of a class stay together. `name` is the data's name in errors.
// Errors: those of CheckLabelsDiffer and TargetsOf; INVALID_ARGUMENT if all examples have the same labels, or naming
// all labels of fewer than two different examples.
absl::StatusOr<DividedData> Divide(std::vector<LabelledExample> train, std::vector<LabelledExample> held_out,
                                   const Division& division, const std::string& name);

}  // namespace longshort::models
