#include "models/train/starting_model.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/GradMode.h"
#include "models/weights/tensors.h"

namespace longshort::models {

absl::Status BeginWith(const ModelDirectory& model, const std::string& new_head,
                       const std::vector<NamedParameter>& parameters) {
  const c10::NoGradGuard no_grad;
  for (const NamedParameter& parameter : parameters) {
    if (!new_head.empty() && parameter.name.starts_with(new_head)) continue;
    const StoredTensor* const stored = model.weights.Find(parameter.name);
    const auto shape = parameter.value.sizes();
    if (stored == nullptr || !std::equal(shape.begin(), shape.end(), stored->shape.begin(), stored->shape.end())) {
      return absl::InvalidArgumentError(
          absl::StrCat("--from=", model.path, ": tensor ", parameter.name, " is missing or has another shape"));
    }
    at::Tensor value = at::empty(shape);
    LS_RETURN_IF_ERROR(
        ReadAsFloat32(model.weights, *stored, {value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel())}));
    parameter.value.copy_(value);
  }
  return absl::OkStatus();
}

void Overwrite(const std::vector<NamedParameter>& begin, const std::vector<NamedParameter>& parameters) {
  const c10::NoGradGuard no_grad;
  for (const NamedParameter& value : begin) {
    for (const NamedParameter& parameter : parameters) {
      if (parameter.name == value.name) parameter.value.copy_(value.value);
    }
  }
}

absl::StatusOr<std::vector<std::string>> LabelsOfModel(const ModelDirectory& model, int64_t classes) {
  if (!model.labels_text) return std::vector<std::string>();
  return ParseLabels(*model.labels_text, classes, model.labels_path());
}

}  // namespace longshort::models
