// A loaded model, with its tokenizer or preprocessor, in plain types.
#pragma once

#include <memory>
#include <variant>

#include "models/classifier.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

struct LoadedLanguageModel {
  LanguageModelWeights weights;
  std::shared_ptr<const Tokenizer> tokenizer;  // null for a model that accepts only ids
};

struct LoadedClassifier {
  ClassifierWeights weights;
  // For a text classifier; null for one that accepts only ids.
  std::shared_ptr<const TextEncoder> tokenizer;
  // For a classifier of images or pixel sequences.
  std::shared_ptr<const ImagePreprocessor> preprocessor;
};

using LoadedModel = std::variant<LoadedLanguageModel, LoadedClassifier>;

}  // namespace longshort::models
