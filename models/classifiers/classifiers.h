// Loads classifiers for serving, and the tokenizer of their documents.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/load_options.h"
#include "models/tokenizer/tokenizer.h"
#include "models/weights/model_directory.h"
#include "models/weights/text_classifier_config.h"

namespace longshort::models {

// Errors: those of the architecture's config parser, CheckTensors and LoadServedClassifier; INTERNAL if LibTorch fails.

absl::StatusOr<ClassifierWeights> LoadTextClassifier(const ModelDirectory& directory, const LoadOptions& options);
// A ViL with long-short attention (ViL-LS). It accepts only images of image_size x image_size pixels.
absl::StatusOr<ClassifierWeights> LoadVil(const ModelDirectory& directory, const LoadOptions& options);
// A CvT*-LS. It accepts images of any size that CheckCvtImageSize accepts.
absl::StatusOr<ClassifierWeights> LoadCvt(const ModelDirectory& directory, const LoadOptions& options);

// The tokenizer of a text classifier's directory; null if it is "none" or "pixels" in config.json.
// Errors: INVALID_ARGUMENT if vocabulary.txt is missing or broken, or if it exists but the tokenizer does not read it.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadDocumentTokenizer(const ModelDirectory& directory);
// Makes the tokenizer from the content of vocabulary.txt, which only ListOps reads. `name` is its name in errors.
absl::StatusOr<std::unique_ptr<TextEncoder>> MakeDocumentTokenizer(const TextClassifierConfig& config,
                                                                   const std::string& vocabulary,
                                                                   const std::string& name);

}  // namespace longshort::models
