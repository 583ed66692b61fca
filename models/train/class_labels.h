// The labels of training data as classes: in sorted order, counted from 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort {

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

}  // namespace longshort
