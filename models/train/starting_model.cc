#include "models/train/starting_model.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "c10/core/GradMode.h"

namespace longshort::models {
namespace {

constexpr size_t kConfigLimitBytes = size_t{1} << 20;

}  // namespace

absl::Status BeginWith(const ModelDirectory& model, const std::string& new_head,
                       const std::vector<NamedParameter>& parameters) {
  std::vector<NamedParameter> old = parameters;
  if (!new_head.empty()) {
    std::erase_if(old, [&](const NamedParameter& parameter) { return parameter.name.starts_with(new_head); });
  }
  const absl::Status copied = CopyStored(model.weights, old);
  return absl::IsFailedPrecondition(copied)
             ? absl::InvalidArgumentError(absl::StrCat("--from=", model.path, ": ", copied.message()))
             : copied;
}

void Overwrite(const std::vector<NamedParameter>& begin, const std::vector<NamedParameter>& parameters) {
  const c10::NoGradGuard no_grad;
  for (const NamedParameter& value : begin) {
    for (const NamedParameter& parameter : parameters) {
      if (parameter.name == value.name) parameter.value.copy_(value.value);
    }
  }
}

void AddStartingModel(const ModelDirectory& model, RunSettings& settings) {
  settings["--from's fingerprint"] = model.fingerprint;
}

absl::StatusOr<GivenForm> ReadGivenForm(const TrainingFiles& files) {
  GivenForm form{.from = {}, .config = {}, .name = files.config.empty() ? "the preset" : files.config};
  if (!files.from.empty()) {
    LS_ASSIGN_OR_RETURN(form.from, OpenModelDirectory(files.from));
    form.config = form.from->config_text;
    form.name = form.from->config_path();
  } else if (!files.config.empty()) {
    LS_ASSIGN_OR_RETURN(form.config, ReadTextFile(files.config, kConfigLimitBytes));
  }
  return form;
}

absl::StatusOr<std::vector<NamedParameter>> StartingWeights(const ModelDirectory& model, int64_t classes,
                                                            absl::Span<const std::string> labels,
                                                            const std::string& head,
                                                            absl::Span<const TensorShape> tensors) {
  std::vector<std::string> old_labels;
  if (model.labels_text) {
    LS_ASSIGN_OR_RETURN(old_labels, ParseLabels(*model.labels_text, classes, model.labels_path()));
  }
  const bool same = std::equal(labels.begin(), labels.end(), old_labels.begin(), old_labels.end());
  std::vector<NamedParameter> weights = InitialParameters(tensors, /*seed=*/0);
  LS_RETURN_IF_ERROR(BeginWith(model, same ? "" : head, weights));
  if (!same) std::erase_if(weights, [&](const NamedParameter& weight) { return weight.name.starts_with(head); });
  return weights;
}

}  // namespace longshort::models
