// Loads a CvT*-LS image classifier for serving.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/classifier_options.h"
#include "models/weights/model_directory.h"

namespace longshort {

// Images of any size that leaves a token in every stage are taken, square or not.
// Errors: those of ParseCvtConfig, CheckTensors, TensorReader, ParseLabels and MakeItemAttention; INTERNAL if the
// library fails.
absl::StatusOr<std::unique_ptr<Classifier>> LoadCvt(const ModelDirectory& directory, const ClassifierOptions& options);

}  // namespace longshort
