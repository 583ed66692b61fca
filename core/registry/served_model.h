// A loaded model with its engine, and what requests need of it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "core/requests/classifier_engine.h"
#include "core/requests/language_model_engine.h"
#include "core/requests/serving_statistics.h"
#include "models/classifier.h"
#include "models/model.h"
#include "models/tokenizer/tokenizer.h"

namespace longshort::core {

struct ServedLanguageModel {
  std::shared_ptr<const void> memory = nullptr;  // its memory reservation, released after all other members
  models::LanguageModelInfo info;
  std::shared_ptr<const models::Tokenizer> tokenizer;  // null for a model without text
  std::unique_ptr<LanguageModelEngine> engine;
  int64_t max_items = std::numeric_limits<int64_t>::max();  // of one call: the limit of its queue
  // Updated by the engine's observer and by calls.
  std::shared_ptr<ServingStatistics> statistics = std::make_shared<ServingStatistics>();
};

// The batching options that the server reports for an engine.
struct BatchingOptions {
  int64_t max_size = 1;
  absl::Duration max_queue_delay = absl::ZeroDuration();  // how long a batch that is not full waits for more items
};

struct ServedClassifier {
  std::shared_ptr<const void> memory = nullptr;  // as above
  models::ClassifierInfo info;
  std::shared_ptr<const models::TextEncoder> tokenizer;           // null for images, or without text
  std::shared_ptr<const models::ImagePreprocessor> preprocessor;  // null for texts
  std::unique_ptr<ClassifierEngine> engine;
  BatchingOptions batches = {};
  int64_t max_items = std::numeric_limits<int64_t>::max();  // as above
  std::shared_ptr<ServingStatistics> statistics = std::make_shared<ServingStatistics>();
};

// One version of one model, ready to serve. Shared with the requests in flight.
struct ServedModel {
  using Kind = std::variant<ServedLanguageModel, ServedClassifier>;

  std::string name;
  int64_t version = 0;
  Kind kind;
  absl::Duration load_duration;

  int64_t max_items() const {
    return std::visit([](const auto& served) { return served.max_items; }, kind);
  }
  const std::shared_ptr<ServingStatistics>& statistics() const {
    return std::visit(
        [](const auto& served) -> const auto& { return served.statistics; }, kind);
  }
  // SHA-256 of the model's files, in hex.
  const std::string& fingerprint() const {
    return std::visit(
        [](const auto& served) -> const auto& { return served.info.fingerprint; }, kind);
  }
  // The architecture's name in config.json.
  std::string architecture() const { return classifier() ? classifier()->info.architecture : "language_model"; }
  // Null for the other kind.
  const ServedLanguageModel* language_model() const { return std::get_if<ServedLanguageModel>(&kind); }
  const ServedClassifier* classifier() const { return std::get_if<ServedClassifier>(&kind); }
};

// What ModelRegistry::LoadVersion did.
enum class LoadOutcome { kLoaded, kReloaded, kUnchanged };

struct LoadedVersion {
  std::shared_ptr<ServedModel> model;
  LoadOutcome outcome = LoadOutcome::kLoaded;
};

}  // namespace longshort::core
