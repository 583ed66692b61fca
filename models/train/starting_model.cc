#include "models/train/starting_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace longshort::models {

absl::Status BeginWith(const ModelDirectory& model, const std::vector<NamedParameter>& parameters) {
  const absl::Status copied = CopyStored(model.weights, parameters);
  return absl::IsFailedPrecondition(copied)
             ? absl::InvalidArgumentError(absl::StrCat("--from=", model.path, ": ", copied.message()))
             : copied;
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
    LS_ASSIGN_OR_RETURN(form.config, ReadTextFile(files.config, /*limit_bytes=*/size_t{1} << 20));
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
  if (!same) std::erase_if(weights, [&](const NamedParameter& weight) { return weight.name.starts_with(head); });
  LS_RETURN_IF_ERROR(BeginWith(model, weights));
  return weights;
}

}  // namespace longshort::models
