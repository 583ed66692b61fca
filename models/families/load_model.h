// Loads models of all architectures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/classifier.h"
#include "models/images/image_header.h"
#include "models/load_options.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

// A loaded model, with its tokenizer or preprocessor, in plain types.
struct LoadedLanguageModel {
  LanguageModelWeights weights;
  std::shared_ptr<const Tokenizer> tokenizer;  // null for a model that accepts only ids
  WeightSizes sizes = {};
};

struct LoadedClassifier {
  ClassifierWeights weights;
  // For a text classifier; null for one that accepts only ids.
  std::shared_ptr<const TextEncoder> tokenizer;
  // For a classifier of images or pixel sequences.
  std::shared_ptr<const ImagePreprocessor> preprocessor;
  WeightSizes sizes = {};
};

using LoadedModel = std::variant<LoadedLanguageModel, LoadedClassifier>;

struct LoadGuard {
  // Returns whether loading should stop. The loading thread calls it often. Null: never stop.
  std::function<bool()> stop_requested = {};
  // Checks whether weights of these sizes fit. Called once, before the weights' values are read. Null: they fit.
  std::function<absl::Status(const WeightSizes& sizes)> check_room = {};
  // If it is not empty, and the directory has this fingerprint, nothing is loaded.
  std::string served_fingerprint = {};
};

// Loads a model directory. The field "architecture" of config.json selects the loader. Reads the weights twice, for the
// fingerprint and for their values, and all other files once.
// Errors: INVALID_ARGUMENT for an unknown architecture; those of guard.check_room; ALREADY_EXISTS for
// guard.served_fingerprint; CANCELLED after a stop; those of the architecture's loader.
//   image_limits  limits of the images that a classifier accepts
absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options,
                                      const LoadGuard& guard = {}, const ImageLimits& image_limits = {});

}  // namespace longshort::models
