// A model as loading leaves it: the model with what serving needs beside it, in plain types.
#pragma once

#include <memory>
#include <variant>

#include "models/classifier.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::models {

struct LoadedLanguageModel {
  LanguageModelWeights weights;
  std::shared_ptr<const Tokenizer> tokenizer;  // null for a model that takes ids only
};

struct LoadedClassifier {
  ClassifierWeights weights;
  // Of a text classifier; null for one that takes ids only.
  std::shared_ptr<const TextEncoder> tokenizer;
  // Of a classifier of images or pixel sequences.
  std::shared_ptr<const ImagePreprocessor> preprocessor;
};

using LoadedModel = std::variant<LoadedLanguageModel, LoadedClassifier>;

}  // namespace longshort::models
