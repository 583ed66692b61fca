// The model directory whose weights a run begins with (--from).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/train/parameters.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// Copies the stored weights into `parameters`, except those whose names begin with `new_head`, if that is not empty.
// Errors: INVALID_ARGUMENT naming a tensor that is missing or has another shape; those of reading.
absl::Status BeginWith(const ModelDirectory& model, const std::string& new_head,
                       const std::vector<NamedParameter>& parameters);

// Copies each value of `begin` into the parameter of the same name.
void Overwrite(const std::vector<NamedParameter>& begin, const std::vector<NamedParameter>& parameters);

// The labels that the model was trained with; without labels.txt, none.
absl::StatusOr<std::vector<std::string>> LabelsOfModel(const ModelDirectory& model, int64_t classes);

}  // namespace longshort::models
