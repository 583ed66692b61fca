// Loads a text classifier for serving, and the tokenizer of its documents.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/classifier_options.h"
#include "models/weights/model_directory.h"

namespace longshort {

// Errors: those of ParseTextClassifierConfig, CheckTensors, TensorReader, ParseLabels and MakeItemAttention; INTERNAL
// if the library fails.
absl::StatusOr<std::unique_ptr<Classifier>> LoadTextClassifier(const ModelDirectory& directory,
                                                               const ClassifierOptions& options);

// The tokenizer that belongs to a model directory; null where config.json says "none" or "pixels".
// Errors: INVALID_ARGUMENT if vocabulary.txt is missing, broken, or there without a tokenizer that reads it.
absl::StatusOr<std::unique_ptr<DocumentTokenizer>> LoadDocumentTokenizer(const ModelDirectory& directory);

}  // namespace longshort
