// Loads classifiers for serving, and the tokenizer of their documents.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/load_options.h"
#include "models/tokenizer/tokenizer.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// Errors: those of the architecture's config parser, CheckTensors and LoadServedClassifier; INTERNAL if LibTorch fails.

absl::StatusOr<ClassifierWeights> LoadTextClassifier(const ModelDirectory& directory, const LoadOptions& options);
// A ViL with long-short attention (ViL-LS). It accepts only images of image_size x image_size pixels.
absl::StatusOr<ClassifierWeights> LoadVil(const ModelDirectory& directory, const LoadOptions& options);
// A CvT*-LS. It accepts images of any size that CheckCvtImageSize accepts.
absl::StatusOr<ClassifierWeights> LoadCvt(const ModelDirectory& directory, const LoadOptions& options);

// The tokenizer of a text classifier's directory; null if it is "none" or "pixels" in config.json.
// Errors: INVALID_ARGUMENT if the tokenizer's file is missing or broken, or if another tokenizer's file exists.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadDocumentTokenizer(const ModelDirectory& directory);
// The file that a tokenizer reads: vocabulary.txt, tokenizer.json, or "" for none.
std::string_view TokenizerFile(DocumentTokenizerKind tokenizer);
// Makes the tokenizer from the content of its file. `name` is the file's name in errors.
absl::StatusOr<std::unique_ptr<TextEncoder>> MakeDocumentTokenizer(const TextClassifierConfig& config,
                                                                   std::string_view content, const std::string& name);

}  // namespace longshort::models
