// The model directory whose weights a run begins with (--from).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/train/model_writer.h"
#include "models/train/parameters.h"
#include "models/train/trainable_classifier.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// Copies the stored weights into `parameters`. Errors: INVALID_ARGUMENT naming a tensor that is missing or has another
// shape; those of reading.
absl::Status BeginWith(const ModelDirectory& model, const std::vector<NamedParameter>& parameters);

// Adds what identifies the model to the settings of a run that begins with it.
void AddStartingModel(const ModelDirectory& model, RunSettings& settings);

// What the command line says of the form of a classifier.
struct GivenForm {
  std::optional<ModelDirectory> from;
  std::string config;  // config.json; empty: a preset
  std::string name;    // of the config, for errors
};
absl::StatusOr<GivenForm> ReadGivenForm(const TrainingFiles& files);

// The weights of a classifier with `classes` classes, for a model of `tensors` with these labels. If the labels differ,
// those whose names begin with `head` are left out. Errors: those of BeginWith, and of labels.txt.
absl::StatusOr<std::vector<NamedParameter>> StartingWeights(const ModelDirectory& model, int64_t classes,
                                                            absl::Span<const std::string> labels,
                                                            const std::string& head,
                                                            absl::Span<const TensorShape> tensors);

}  // namespace longshort::models
