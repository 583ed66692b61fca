// Loads a ViL with long-short attention (ViL-LS) for serving.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/classifier_options.h"
#include "models/weights/model_directory.h"

namespace longshort {

// The classifier takes images of exactly image_size x image_size pixels.
// Errors: those of ParseVilConfig, CheckTensors, TensorReader, ParseLabels and MakeItemAttention; INTERNAL if LibTorch
// fails.
absl::StatusOr<std::unique_ptr<Classifier>> LoadVil(const ModelDirectory& directory, const ClassifierOptions& options);

}  // namespace longshort
