// Loads a Transformer-LS language model for serving.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "models/load_options.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"
#include "models/weights/model_directory.h"

namespace longshort::models {

// Loads the weights from config.json and model.safetensors of a model directory.
// Errors: those of OpenModelDirectory, ParseLanguageModelConfig, CheckTensors and TensorReader; INVALID_ARGUMENT for
// another precision; those of PrepareDecoder; INTERNAL if the library fails.
absl::StatusOr<LanguageModelWeights> LoadLanguageModel(const std::string& directory, const LoadOptions& options);
absl::StatusOr<LanguageModelWeights> LoadLanguageModel(const ModelDirectory& directory, const LoadOptions& options);

// Loads the tokenizer of a model directory; null if config.json's tokenizer is "none".
// Errors: INVALID_ARGUMENT if vocabulary.txt is missing or broken.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const ModelDirectory& directory);

}  // namespace longshort::models
