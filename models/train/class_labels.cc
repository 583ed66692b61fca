#include "models/train/class_labels.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/weights/labels.h"

namespace longshort {

absl::Status CheckLabelCount(absl::Span<const std::string> labels, int64_t classes, const std::string& name) {
  if (static_cast<int64_t>(labels.size()) != classes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", labels.size(), " labels, the model has ", classes, " classes"));
  }
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> read,
                      ParseLabels(LabelsText(labels), classes, absl::StrCat(name, ": its labels as labels.txt")));
  for (size_t i = 0; i < read.size(); ++i) {
    if (read[i] != labels[i]) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": label ", QuoteForMessage(labels[i]),
                                                     " would be read from labels.txt as ", QuoteForMessage(read[i])));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ClassOf(absl::Span<const std::string> labels, const std::string& label,
                                const std::string& name) {
  const auto found = std::lower_bound(labels.begin(), labels.end(), label);
  if (found == labels.end() || *found != label) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": label ", QuoteForMessage(label), " is none of the training data's"));
  }
  return found - labels.begin();
}

std::string LabelsText(absl::Span<const std::string> labels) {
  std::string text;
  for (const std::string& label : labels) absl::StrAppend(&text, label, "\n");
  return text;
}

at::Tensor CertainTargets(absl::Span<const int64_t> targets, int64_t classes) {
  at::Tensor rows = at::zeros({static_cast<int64_t>(targets.size()), classes});
  float* const values = rows.mutable_data_ptr<float>();
  for (size_t i = 0; i < targets.size(); ++i) values[static_cast<int64_t>(i) * classes + targets[i]] = 1;
  return rows;
}

}  // namespace longshort
